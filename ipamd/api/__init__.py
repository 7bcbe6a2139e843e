"""The HTTP API and the node socket: the only place that knows aiohttp."""
