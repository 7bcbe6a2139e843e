"""Owns serving the page for operators: the files of `ipamd.web`, under a policy that lets nothing else in."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from ipamd.api.intake import SERVER

PREFIX: Final = "/ui/"

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy (W3C CSP Level 3): scripts and styles from here only, none inline, no frame around it."""

_HEADERS: Final = {
    "Server": SERVER,
    "Cache-Control": "no-cache",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def add_page(app: web.Application) -> None:
    """Serve the page. It needs no token: it holds nothing, and asks the API with the one that its reader gives it."""
    app.router.add_get("/", _to_page)
    app.router.add_get(PREFIX.rstrip("/"), _to_page)
    for name, content in _files().items():
        app.router.add_get(PREFIX + ("" if name == "index.html" else name), _file(name, content))


def _files() -> dict[str, bytes]:
    """The files of the page, by name."""
    found = files("ipamd.web").iterdir()
    return {one.name: one.read_bytes() for one in found if one.name.rpartition(".")[2] in _TYPES}


def _file(name: str, content: bytes) -> Handler:
    kind = _TYPES[name.rpartition(".")[2]]

    async def serve(_request: web.Request) -> web.Response:
        return web.Response(body=content, headers={**_HEADERS, "Content-Type": kind})

    return serve


async def _to_page(_request: web.Request) -> web.Response:
    return web.Response(status=307, headers={**_HEADERS, "Location": PREFIX})
