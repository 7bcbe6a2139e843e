"""Owns the making of the aiohttp application from the use cases."""

from __future__ import annotations

from enum import Enum

from aiohttp import web

from ipamd.service import Services


class Access(Enum):
    """How callers of a listener are told apart."""

    SOCKET = "socket"
    """The node socket: whoever can open the file is admin."""

    TOKENS = "tokens"
    """TCP: a bearer token is needed."""

    OPEN = "open"
    """TCP with `--insecure`: whoever connects is admin."""


def build(services: Services, access: Access) -> web.Application:
    """The application for one kind of listener. Serve it with `ipamd.api.server.Listener`."""
    raise NotImplementedError
