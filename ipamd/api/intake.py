"""Owns what is read of every request before it is understood: its id, its deadline, its body."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aiohttp import web

from ipamd.api.body import MAX_BODY_BYTES
from ipamd.api.front import Front
from ipamd.api.problems import Failure
from ipamd.errors import ApiError
from ipamd.service.ports import Random

FRONT: web.AppKey[Front] = web.AppKey("front")
"""Where the application keeps what answers need that no handler gives."""

SERVER = "ipamd"
"""What answers call themselves: enough to tell them from those of a proxy, and no versions for strangers."""

BODY_S = 10.0
"""How long a body may take to arrive."""

LARGE_BODY_S = 60.0
"""The same for one that may be much larger than most."""

DEFAULT_DEADLINE_S = 10.0
MAX_DEADLINE_MS = 60_000
MARGIN_S = 0.2
"""An answer is given this much before the caller's deadline, so that it still arrives."""

MAX_ID = 128
_ID_BYTES = 8
_CLOSE = {"Connection": "close"}


def request_id_of(headers: Mapping[str, str], random: Random) -> str:
    """The caller's id for the request, if it is 1 to 128 visible ASCII characters, else a new one."""
    given = headers.get("X-Request-Id")
    if given and len(given) <= MAX_ID and given.isascii() and given.isprintable() and " " not in given:
        return given
    return random(_ID_BYTES).hex()


def deadline_after_s(now_s: float, left_ms: int | None) -> float:
    """Until when a request is worked on, given the time that its caller has left."""
    if left_ms is None:
        return now_s + DEFAULT_DEADLINE_S
    left_s = left_ms / 1000
    return now_s + max(left_s - MARGIN_S, left_s / 2)


def left_ms_of(headers: Mapping[str, str]) -> int | None:
    """The time that the caller has left; None: it does not say. Raises ApiError."""
    text = headers.get("Ipamd-Deadline-Ms")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ApiError(
            "invalid_request", f"header Ipamd-Deadline-Ms must be a number of milliseconds, not {text[:32]!r}"
        )
    return min(int(text), MAX_DEADLINE_MS)


async def read_body(request: web.Request, most_bytes: int = MAX_BODY_BYTES) -> bytes:
    """The whole body. Raises ApiError, Failure, and aiohttp's own for one that is too large."""
    length = request.content_length
    if length is not None and length > most_bytes:
        raise _too_large(f"the body has {length} bytes", most_bytes)
    if most_bytes > MAX_BODY_BYTES:
        return await _read_large(request, most_bytes)
    if not request.can_read_body:
        return b""
    if request.content.is_eof():  # all of it came with the headers: no timer is needed
        return await request.read()
    try:
        async with asyncio.timeout(BODY_S):
            return await request.read()
    except TimeoutError:
        raise _too_late(BODY_S) from None


async def _read_large(request: web.Request, most_bytes: int) -> bytes:
    """The body of a route that takes more than the application's own limit, which does not hold here."""
    body = bytearray()
    try:
        async with asyncio.timeout(LARGE_BODY_S):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > most_bytes:
                    raise _too_large("the body is larger", most_bytes)
    except TimeoutError:
        raise _too_late(LARGE_BODY_S) from None
    return bytes(body)


def _too_large(what: str, most_bytes: int) -> Failure:
    return Failure(ApiError("too_large", f"{what}; {most_bytes // 1024 // 1024} MiB is the most"), _CLOSE)


def _too_late(limit_s: float) -> Failure:
    return Failure(ApiError("invalid_request", f"the body did not arrive within {limit_s:.0f} s"), _CLOSE)
