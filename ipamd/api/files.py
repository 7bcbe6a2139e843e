"""Owns sending a file as an answer: in pieces, at a bounded rate, beside those who wait for little."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from aiohttp import web

BYTES_A_SECOND: Final = 32 << 20
"""What a file may take of disk and network, while others wait for their answers."""

_CHUNK_BYTES: Final = 256 * 1024
_SILENCE_S: Final = 30.0
"""How long a reader may take nothing."""


async def send_file(request: web.Request, path: Path, size_bytes: int, headers: dict[str, str]) -> web.StreamResponse:
    """Send a whole file. Raises ConnectionError where the reader is gone, or takes nothing."""
    loop = asyncio.get_running_loop()
    response = web.StreamResponse(headers={**headers, "Content-Length": str(size_bytes)})
    await response.prepare(request)
    with path.open("rb") as file:
        began_s, sent = loop.time(), 0
        while chunk := await loop.run_in_executor(None, file.read, _CHUNK_BYTES):
            try:
                async with asyncio.timeout(_SILENCE_S):
                    await response.write(chunk)
            except TimeoutError:
                raise ConnectionError(f"the reader took nothing for {_SILENCE_S:g} s") from None
            sent += len(chunk)
            await asyncio.sleep(max(0.0, began_s + sent / BYTES_A_SECOND - loop.time()))
    await response.write_eof()
    return response
