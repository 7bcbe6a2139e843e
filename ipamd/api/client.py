"""Owns what all of this program's HTTP clients share: the session, and whether a failed request may have been read."""

from __future__ import annotations

import os
from typing import Any

import aiohttp

from ipamd.api.intake import DEFAULT_DEADLINE_S

CONNECT_S = 1.0
"""A host behind a black hole costs no more."""

_KEEP_S = 30.0

UNREACHED = (aiohttp.ClientConnectorError, aiohttp.InvalidURL, aiohttp.ConnectionTimeoutError, UnicodeError)
"""Failures before anything was sent; the last is that of a host name with an empty part, or one that is too long."""


class Sent:
    """Whether anything of a request went out: until then the other side cannot have acted on it."""

    head = False


def open_session() -> aiohttp.ClientSession:
    """A session whose requests say in their context, a Sent, whether they went out."""
    trace = aiohttp.TraceConfig()
    trace.on_request_headers_sent.append(_note_sent)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_S),
        trace_configs=[trace],
        timeout=aiohttp.ClientTimeout(total=DEFAULT_DEADLINE_S),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def why(error: BaseException) -> str:
    """A failure in a few words."""
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        return os.strerror(error.os_error.errno).lower()
    return str(error) or type(error).__name__


async def _note_sent(_session: aiohttp.ClientSession, context: Any, _parameters: Any) -> None:
    context.trace_request_ctx.head = True
