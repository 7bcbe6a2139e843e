"""The admin command line: a client of the HTTP API, which must never import the server."""
