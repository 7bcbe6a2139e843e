"""The JSON of the API, as types: what parses requests, renders answers and generates the OpenAPI document."""
