"""A file as an answer: all of it, and to a HEAD its length alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from ipamd.api.files import send_file


@pytest.mark.parametrize(("method", "sent"), [("GET", b"x" * 300_000), ("HEAD", b"")])
async def test_a_file_is_sent_whole_and_not_at_all_to_a_head(tmp_path: Path, method: str, sent: bytes) -> None:
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
    writer.write(b"%s / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % method.encode())
    async with asyncio.timeout(5):
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    await runner.cleanup()
    assert b"\r\nContent-Length: 300000" in head
    assert body == sent
