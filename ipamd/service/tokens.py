"""Owns bearer tokens: making, listing and revoking them, and telling whose a secret is."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import NamedTuple

from ipamd.core.commands import DropToken, PutToken
from ipamd.core.model import Role, Token
from ipamd.core.outcomes import Done
from ipamd.core.ports import Log
from ipamd.service.ports import Clock, Random
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import At, Page, Request, page_of

PREFIX = "ipamd_"
"""How a secret begins, so that people and scanners know one when they see it."""

_SECRET_BYTES = 32
_ID_BYTES = 8
_FRESH_S = 0.25


def new_secret(random: Random) -> str:
    """A secret with 256 bits that nobody can guess."""
    return PREFIX + base64.urlsafe_b64encode(random(_SECRET_BYTES)).decode().rstrip("=")


def digest_of(secret: str) -> bytes:
    """What is stored of a secret: its SHA-256. It needs no salt: nobody can list 2^256 secrets."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class Minted(NamedTuple):
    """A new token. `secret` None: the request was a repetition, and the first answer had the secret."""

    token: Token
    secret: str | None


class Tokens:
    """The use cases of tokens.

    Secrets are looked up in a copy of all tokens, which is at most a quarter of a second older than this member's
    state; what is made or revoked through this member counts at once.
    """

    def __init__(self, proposer: Proposer, reader: Reader, log: Log, clock: Clock, random: Random) -> None:
        self._proposer, self._reader = proposer, reader
        self._log, self._clock, self._random = log, clock, random
        self._known: dict[bytes, Token] = {}
        self._index = -1
        self._read_s = 0.0

    def bearer(self, secret: str) -> Token | None:
        """The token of a secret; None: there is none, or it has expired."""
        self._refresh(_FRESH_S)
        digest = digest_of(secret)
        token = self._known.get(digest)
        if token is None:
            self._refresh(0.0)
            token = self._known.get(digest)
        if token is None or not hmac.compare_digest(token.digest, digest):
            return None
        return None if token.expires_ms is not None and token.expires_ms <= self._clock.wall_ms() else token

    async def page(self, after: str, limit: int, request: Request) -> At[Page[Token]]:
        """Up to `limit` tokens with ids above `after`, by id. Raises Unavailable."""
        return await self._reader.read(
            lambda snapshot: page_of([token for token in snapshot.tokens() if token.id > after], limit), request
        )

    async def create(self, name: str, role: Role, node: str | None, ttl_s: int | None, request: Request) -> At[Minted]:
        """Make a token. Raises ApiError, Unavailable.

        A secret is told once: the repetition of a keyed request gets the token that the first one made, without it.
        """
        now_ms, secret = self._clock.wall_ms(), new_secret(self._random)
        token_id = (request.key.op if request.key else self._random(_ID_BYTES))[:_ID_BYTES].hex()
        expires_ms = None if ttl_s is None else now_ms + ttl_s * 1000
        token = Token(token_id, name, role, digest_of(secret), now_ms, expires_ms, node)
        done = await self._proposer.carry_out(PutToken(request.origin, token), request, Done)
        self._index = -1
        stored = await self._reader.read(lambda snapshot: snapshot.token(token_id), request)
        return At(done.index, _minted(token, stored.value, secret))

    async def revoke(self, token_id: str, request: Request) -> At[Done]:
        """Revoke a token. Raises ApiError, Unavailable."""
        done = await self._proposer.carry_out(DropToken(request.origin, token_id), request, Done)
        self._index = -1
        return done

    def _refresh(self, fresh_s: float) -> None:
        now_s, applied = self._clock.monotonic_s(), self._log.status().applied
        if self._index >= applied or (self._index >= 0 and now_s - self._read_s < fresh_s):
            return
        found = self._reader.glance(lambda snapshot: {token.digest: token for token in snapshot.tokens()})
        self._index, self._known, self._read_s = found.index, found.value, now_s


def _minted(token: Token, stored: Token | None, secret: str) -> Minted:
    repeated = stored is None or not hmac.compare_digest(stored.digest, token.digest)
    return Minted(stored or token, None if repeated else secret)
