"""Owns state files on their way from one member to another: in pieces, at a bounded rate, beside the log."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import BinaryIO, Final

import aiohttp
from aiohttp import web

from ipamd.api.between import BYTES
from ipamd.api.peers import HttpPeers
from ipamd.core.model import Member
from ipamd.core.ports import Unavailable
from ipamd.service.inside import Inside

BYTES_A_SECOND: Final = 32 << 20
"""What a file may take of disk and network, while others wait for their answers."""

_CHUNK_BYTES: Final = 256 * 1024
_SILENCE_S: Final = 10.0


async def send(inside: Inside, request: web.Request) -> web.StreamResponse:
    """Make a state file, and send it."""
    loop = asyncio.get_running_loop()
    async with inside.state_file() as made:
        response = web.StreamResponse(headers={"Content-Type": BYTES, "Content-Length": str(made.size_bytes)})
        await response.prepare(request)
        with Path(made.path).open("rb") as file:  # noqa: ASYNC230 - opening what was just written does not wait
            began_s, sent = loop.time(), 0
            while chunk := await loop.run_in_executor(None, file.read, _CHUNK_BYTES):
                await response.write(chunk)
                sent += len(chunk)
                await asyncio.sleep(max(0.0, began_s + sent / BYTES_A_SECOND - loop.time()))
        await response.write_eof()
    return response


class HttpSnapshots:
    """Where this member gets state files: consensus.peers.SnapshotSource."""

    def __init__(self, peers: HttpPeers) -> None:
        self._peers = peers

    async def fetch(self, member: Member, path: Path) -> None:
        """Write the newest state of a member to a file, replacing what lies there. Raises Unavailable."""
        draft = path.with_name(f"{path.name}.fetched")
        limit = aiohttp.ClientTimeout(total=None, sock_connect=1.0, sock_read=_SILENCE_S)
        try:
            async with self._peers.open(member, "GET", "/snapshot", limit) as answer:
                if answer.status != 200:
                    raise Unavailable(f"{member.name} has no state file to give (status {answer.status})", "none")
                await _write(answer, draft)
            draft.replace(path)
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise Unavailable(f"the state of {member.name} did not come: {error!r}", "none") from None
        finally:
            draft.unlink(missing_ok=True)


async def _write(answer: aiohttp.ClientResponse, draft: Path) -> None:
    loop = asyncio.get_running_loop()
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
        async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
            await loop.run_in_executor(None, file.write, chunk)
        await loop.run_in_executor(None, _sync, file)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
