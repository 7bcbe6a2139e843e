"""Owns by which names a server without tokens answers: a page of a stranger cannot reach it under a name of its own.

A browser asks whatever address a name stands for. Where no token is asked for, a page could have its own name stand for
this server (DNS rebinding), and read and write as if it were its own origin. The name is in the Host header.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from ipamd.api.endpoint import headers_of
from ipamd.api.front import Front
from ipamd.api.intake import request_id_of
from ipamd.api.problems import failure_of, respond
from ipamd.errors import ApiError

_NOBODYS: Final = frozenset({"localhost", "local", "internal", "lan", "arpa", "test"})
"""Last labels that nobody can register in the public DNS (RFC 6761, 6762, 8375), or that are for private networks."""


def only_own_hosts(front: Front, names: Collection[str]) -> Middleware:
    """Refuses requests for names that are not in `names` and that a stranger could own."""
    known = {name.lower() for name in names}

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = _host(request.headers.get("Host", ""))
        if host is not None and (host in known or _nobody_can_own(host)):
            return await handler(request)
        request_id = request_id_of(request.headers, front.random)
        sentence = (
            f"without tokens this server answers to its own names only, and {request.headers.get('Host', '')[:255]!r}"
            " is none: use its address, or give it that name as --advertise-url"
        )
        failure = failure_of(ApiError("forbidden", sentence), request_id)
        return respond(failure, request_id, headers_of(front, request_id))

    return check


def _host(header: str) -> str | None:
    """The host of a Host header; None: it has none that can be read."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


def _nobody_can_own(host: str) -> bool:
    """An address, a name of one label, or one below a label that is not given out."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        labels = host.rstrip(".").split(".")
        return len(labels) == 1 or labels[-1] in _NOBODYS
    return True
