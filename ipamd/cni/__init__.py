"""CNI requests and results: bytes in, values out, bytes back. No I/O, no clock; knows only the core and the errors."""
