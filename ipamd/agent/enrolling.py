"""Owns how a node comes by its own token: it makes the secret, and has the cluster take its digest, once.

The secret is on the disk before anybody is asked. If the answer is lost, the same secret is asked for again, and the
cluster says that the node has it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import Final, Protocol

import msgspec

from ipamd.agent.upstream import Upstream
from ipamd.cni.answer import read_problem
from ipamd.core.ports import Unavailable
from ipamd.service.background import Background
from ipamd.service.ports import Clock
from ipamd.service.wire import Asked, Said

AGAIN_S: Final = 2.0
REFUSED_AGAIN_S: Final = 30.0
"""A refusal may end: the name is forgotten, or another token put into the file."""

_PATIENCE_S: Final = 2.0
"""The node socket waits so long at a start at most."""

_HEADERS: Final = {"Accept": "application/json", "Content-Type": "application/json"}

_log = logging.getLogger("ipamd.agent")


class Purse(Protocol):
    """Where a node keeps its token."""

    @property
    def is_empty(self) -> bool:
        """Whether there is none yet."""

    def asked(self) -> str:
        """The secret that is asked for, kept on the disk. Raises OSError."""

    def settle(self) -> None:
        """The cluster has taken it: it is the node's token from now on. Raises OSError."""


class Enrolling(Background):
    """Asks until the node has its token; it ends then."""

    def __init__(self, upstream: Upstream, purse: Purse, node: str, clock: Clock) -> None:
        """`upstream` shows a token of the role enrol; `node`: the whole name."""
        super().__init__()
        self._upstream, self._purse, self._node, self._clock = upstream, purse, node, clock
        self._said: str | None = None

    async def enrol(self) -> float | None:
        """Ask once; after how many seconds to ask again, None: the node has its token."""
        try:
            said = await self._ask(self._purse.asked())
            if said.status in (200, 201):
                self._purse.settle()
                _log.info("this node has its own token now", extra={"node": self._node})
                return None
        except Unavailable as error:
            self._tell(error.detail)
            return AGAIN_S
        except OSError as error:
            self._tell(str(error))
            return REFUSED_AGAIN_S
        self._tell(read_problem(said.body) or f"a server answered with status {said.status}")
        return REFUSED_AGAIN_S

    async def _run(self) -> None:
        while self._purse.is_empty:
            wait_s = await self.enrol()
            await asyncio.sleep(wait_s or 0)

    async def _ask(self, secret: str) -> Said:
        digest = hashlib.sha256(secret.encode()).hexdigest()
        body = msgspec.json.encode({"node": self._node, "secret_sha256": digest})
        asked = Asked("POST", "/v1/tokens/enrol", _HEADERS, body)
        return await self._upstream.ask(asked, self._clock.monotonic_s() + _PATIENCE_S)

    def _tell(self, why: str) -> None:
        """Each reason once: it may last."""
        if why != self._said:
            self._said = why
            _log.error("this node has no token yet, and nobody takes its calls: %s", why)
