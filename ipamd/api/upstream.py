"""Owns carrying an agent's requests to servers over HTTP: ipamd.service.wire.Transport."""

from __future__ import annotations

import ipaddress
import logging
import ssl
from collections.abc import Callable
from io import BytesIO
from typing import Final, Literal

import aiohttp
from yarl import URL

from ipamd.api.body import MAX_BODY_BYTES
from ipamd.api.client import CONNECT_S, UNREACHED, Sent, open_session, why
from ipamd.core.ports import Unavailable
from ipamd.service.wire import Asked, Said

MOST_BYTES: Final = 8 << 20
"""More than any answer that a node may ask for has."""

_log = logging.getLogger("ipamd.agent")


class HttpTransport:
    """Connections to servers, which are kept. Used in one loop."""

    def __init__(self, token: Callable[[], str | None], trust: Callable[[], ssl.SSLContext | None]) -> None:
        """`token` is what a request shows, `trust` what a TLS server must hold before (None: the system's)."""
        self._token, self._trust = token, trust
        self._session: aiohttp.ClientSession | None = None
        self._withheld: set[str] = set()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def exchange(self, url: str, asked: Asked, timeout_s: float) -> Said:
        """One request to one server. Raises Unavailable, which says whether the server may have acted on it."""
        if self._session is None:
            self._session = open_session()
        sent, base = Sent(), URL(url)
        limit = aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(CONNECT_S, timeout_s))
        try:
            async with self._session.request(
                asked.method,
                URL(f"{url}{asked.target}", encoded=True),
                data=BytesIO(asked.body) if len(asked.body) > MAX_BODY_BYTES else asked.body or None,
                headers={**asked.headers, **self._authorization(base)},
                timeout=limit,
                ssl=self._trust() or True,
                allow_redirects=False,
                trace_request_ctx=sent,
            ) as answer:
                return Said(answer.status, answer.headers, await _read(answer))
        except UNREACHED as error:
            raise Unavailable(why(error), "none") from None
        except (aiohttp.ClientError, OSError) as error:
            outcome: Literal["none", "unknown"] = "unknown" if sent.head else "none"
            raise Unavailable(why(error), outcome) from None

    def _authorization(self, url: URL) -> dict[str, str]:
        token = self._token()
        if token is None:
            return {}
        if url.scheme == "https" or _is_loopback(url.host or ""):
            return {"Authorization": f"Bearer {token}"}
        if str(url) not in self._withheld:
            self._withheld.add(str(url))
            _log.warning("the token is not sent to %s: without TLS others could read it", url)
        return {}


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    data = bytearray()
    async for part in answer.content.iter_chunked(1 << 16):
        data += part
        if len(data) > MOST_BYTES:
            raise Unavailable(f"the answer is larger than {MOST_BYTES >> 20} MiB", "unknown")
    return bytes(data)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
