"""Owns the route of backups."""

from __future__ import annotations

from contextlib import AsyncExitStack

from aiohttp import web

from ipamd.api.exchange import Exchange, Reply, Streamed
from ipamd.api.files import send_file
from ipamd.api.schema.common import ReadQuery
from ipamd.core.ports import Unavailable

MEDIA_TYPE = "application/vnd.sqlite3"


async def take(exchange: Exchange[None, ReadQuery]) -> Reply:
    """A backup of now. It is made before the answer begins, so that whatever prevents it is an answer of its own."""
    backups = exchange.services.backups
    if backups is None:
        raise Unavailable("this process has no state of its own to back up", "none")
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(backups.taken(exchange.request))
        name = f"ipamd-{backups.cluster_id}-{made.log_index}.db"
        about = {
            "Content-Type": MEDIA_TYPE,
            "Content-Disposition": f'attachment; filename="{name}"',
            "Ipamd-Sha256": made.sha256,
        }
        kept = stack.pop_all()

        async def send(request: web.Request, headers: dict[str, str]) -> web.StreamResponse:
            async with kept:
                return await send_file(request, made.path, made.size_bytes, headers | about)

        return Reply(made.log_index, Streamed(send))
