"""A file as an answer: all of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aiohttp import web

from ipamd.api.files import send_file


async def test_a_file_is_sent_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 300_000)

    async def serve(request: web.Request) -> web.StreamResponse:
        return await send_file(request, path, 300_000, {})

    app = web.Application()
    app.router.add_get("/", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(60):
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    await runner.cleanup()
    assert b"\r\nContent-Length: 300000" in head
    assert body == b"x" * 300_000
