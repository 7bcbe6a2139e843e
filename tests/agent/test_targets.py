"""Request targets on an agent's socket that are not plain paths: they are meant for the cluster all the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.agent.attended import Node


async def status_of(socket: Path, target: str) -> int:
    reader, writer = await asyncio.open_unix_connection(str(socket))
    writer.write(f"GET {target} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return int(answer.split()[1])


async def test_a_whole_url_is_its_path(node: Node) -> None:
    """RFC 9112, 3.2.2: a server takes the absolute form, which clients behind a proxy send."""
    for target in ("/v1/pools/p/usage", "http://elsewhere:1/v1/pools/p/usage?stale=ok"):
        assert await status_of(node.config.socket, target) == 200
    assert await status_of(node.config.socket, "http://elsewhere:1/v1/pools/none/usage") == 404
