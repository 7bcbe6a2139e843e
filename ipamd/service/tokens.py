"""Owns bearer tokens: making, listing and revoking them, and telling whose a secret is."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import NamedTuple

from ipamd.core.commands import DropToken, PutToken
from ipamd.core.model import Role, Token
from ipamd.core.outcomes import Done, TokenStored
from ipamd.core.ports import Log
from ipamd.core.tokens import TTL_S, has_ended
from ipamd.service.ports import Clock, Random
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import At, Page, Request, page_of
from ipamd.service.tokenuse import TokenUse

PREFIX = "ipamd_"
"""How a secret begins, so that people and scanners know one when they see it."""

_SECRET_BYTES = 32
_ID_BYTES = 8
_FRESH_S = 0.25
_MOST_KNOWN = 4096


def new_secret(random: Random) -> str:
    """A secret with 256 bits that nobody can guess."""
    return PREFIX + base64.urlsafe_b64encode(random(_SECRET_BYTES)).decode().rstrip("=")


def digest_of(secret: str) -> bytes:
    """What is stored of a secret: its SHA-256. It needs no salt: nobody can list 2^256 secrets."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class Minted(NamedTuple):
    """A token that was asked for. `secret` None: who asked has it, or the answer before this one had it."""

    token: Token
    secret: str | None
    is_new: bool = True


class _Known(NamedTuple):
    token: Token
    log_index: int
    read_s: float


class Tokens:
    """The use cases of tokens.

    What was found for a secret is remembered for a quarter of a second, or as long as the state stays as it is; what
    is made or revoked through this member counts at once. A token ends by the wall clock of the log.
    """

    def __init__(
        self, proposer: Proposer, reader: Reader, log: Log, clock: Clock, *, random: Random, use: TokenUse
    ) -> None:
        self._proposer, self._reader, self._use = proposer, reader, use
        self._log, self._clock, self._random = log, clock, random
        self._known: dict[bytes, _Known] = {}
        self._wall_ms = 0

    def bearer(self, secret: str) -> Token | None:
        """The token of a secret; None: there is none, or it has expired."""
        token = self._find(secret)
        return None if token is None or has_ended(token, self._wall_ms) else token

    def expired(self, secret: str) -> Token | None:
        """The token of a secret, if that is one which has expired: whoever has it may be told so."""
        token = self._find(secret)
        return token if token is not None and has_ended(token, self._wall_ms) else None

    def used(self, token: Token) -> None:
        """A token has opened something."""
        self._use.note(token, self._wall_ms)

    async def page(self, after: str, limit: int, request: Request) -> At[Page[Token]]:
        """Up to `limit` tokens with ids above `after`, by id. Raises Unavailable."""
        return await self._reader.read(
            lambda snapshot: page_of([token for token in snapshot.tokens() if token.id > after][: limit + 1], limit),
            request,
        )

    async def create(self, name: str, role: Role, node: str | None, ttl_s: int | None, request: Request) -> At[Minted]:
        """Make a token; `ttl_s` None: it does not end. Raises ApiError, Unavailable.

        A secret is told once: the repetition of a keyed request gets the token that the first one made, without it.
        """
        secret = new_secret(self._random)
        return await self._store(PutToken(request.origin, self._new(name, role, node, secret), ttl_s), secret, request)

    async def enrol(self, node: str, digest: bytes | None, request: Request) -> At[Minted]:
        """Make a node's own token, once. Raises ApiError, Unavailable.

        `digest`: that of a secret which the node made and keeps, so that it may ask again when the answer is lost.
        """
        secret = new_secret(self._random)
        token = self._new(node, Role.NODE, node, secret)
        if digest is not None:
            token = Token(token.id, node, Role.NODE, digest, 0, node=node)
        return await self._store(PutToken(request.origin, token, TTL_S[Role.NODE], enrolling=True), secret, request)

    async def revoke(self, token_id: str, request: Request) -> At[Done]:
        """Revoke a token. Raises ApiError, Unavailable."""
        done = await self._proposer.carry_out(DropToken(request.origin, token_id), request, Done)
        self._known.clear()
        return done

    def _new(self, name: str, role: Role, node: str | None, secret: str) -> Token:
        return Token(self._random(_ID_BYTES).hex(), name, role, digest_of(secret), 0, node=node)

    async def _store(self, command: PutToken, secret: str, request: Request) -> At[Minted]:
        done = await self._proposer.carry_out(command, request, TokenStored)
        self._known.clear()
        stored = done.value.token
        is_told = hmac.compare_digest(stored.digest, digest_of(secret))
        return At(done.index, Minted(stored, secret if is_told else None, stored.id == command.token.id))

    def _find(self, secret: str) -> Token | None:
        digest = digest_of(secret)
        token = self._remembered(digest) or self._look_up(digest)
        return token if token is not None and hmac.compare_digest(token.digest, digest) else None

    def _remembered(self, digest: bytes) -> Token | None:
        known = self._known.get(digest)
        if known is None:
            return None
        is_fresh = known.log_index >= self._log.status().applied or self._clock.monotonic_s() - known.read_s < _FRESH_S
        return known.token if is_fresh else None

    def _look_up(self, digest: bytes) -> Token | None:
        found = self._reader.glance(lambda snapshot: (snapshot.wall_ms, snapshot.token_of_digest(digest)))
        wall_ms, token = found.value
        self._wall_ms = max(self._wall_ms, wall_ms)
        if token is None:
            self._known.pop(digest, None)
            return None
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[digest] = _Known(token, found.index, self._clock.monotonic_s())
        return token
