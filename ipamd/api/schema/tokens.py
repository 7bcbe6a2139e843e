"""Owns the JSON of tokens. A secret is in one answer, once, and nowhere else."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ipamd.api.schema.common import Given, Shown, maybe_when, when
from ipamd.core.definition import DefinitionError, check_seconds_or_forever
from ipamd.core.model import FOREVER, Role, Token
from ipamd.core.names import InvalidName, check_name, check_node
from ipamd.core.tokens import TTL_S
from ipamd.errors import ApiError
from ipamd.service.tokens import Minted


class TokenBody(Given):
    """A token to make. A `node` token is bound to one node name.

    `ttl_s`: how long it lasts, -1 for ever; without it 90 days, of the role `enrol` 24 hours, of `node` for ever.
    """

    name: str
    role: Literal["reader", "operator", "admin", "node", "enrol"]
    node: str | None = None
    ttl_s: int | None = None

    def lasts_s(self) -> int | None:
        """How long the token is to last; None: for ever. Raises ApiError for a body that is not valid."""
        try:
            check_name(self.name, "name")
            if self.node is not None:
                check_node(self.node)
            if self.ttl_s is not None:
                check_seconds_or_forever(self.ttl_s, "ttl_s")
        except (InvalidName, DefinitionError) as error:
            raise ApiError("invalid_request", str(error)) from None
        if self.role == "node" and self.node is None:
            raise ApiError(
                "invalid_request", "a token of the role node needs node, the name of the node it is bound to"
            )
        if self.role != "node" and self.node is not None:
            raise ApiError("invalid_request", f"node goes with the role node, not with {self.role}")
        if self.ttl_s is None:
            return TTL_S[Role(self.role)]
        return None if self.ttl_s == FOREVER else self.ttl_s


class EnrolBody(Given):
    """A node that fetches its own token. `node` is its whole name, with that of its cluster.

    `secret_sha256`: the hex digest of a secret of at least 128 bits that the node made and keeps: it may ask again when
    an answer is lost. Without it the server makes the secret, and tells it once.
    """

    node: str
    secret_sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None = None

    def digest(self) -> bytes | None:
        """The digest, in bytes. Raises ApiError for a body that is not valid."""
        try:
            check_node(self.node)
        except InvalidName as error:
            raise ApiError("invalid_request", str(error)) from None
        return None if self.secret_sha256 is None else bytes.fromhex(self.secret_sha256)


class TokenShown(Shown):
    """A token without its secret. `used`: its last use, at most an hour old."""

    id: str
    name: str
    role: str
    node: str | None
    created: str
    expires: str | None
    used: str | None


class MintedShown(TokenShown):
    """A new token. The secret is told this once; null where who asks has it already, or had it told."""

    secret: str | None


def show_token(token: Token) -> TokenShown:
    """A token without its secret."""
    return TokenShown(**_fields(token))


def show_minted(minted: Minted) -> MintedShown:
    """A new token."""
    return MintedShown(**_fields(minted.token), secret=minted.secret)


def _fields(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "node": token.node,
        "created": when(token.created_ms),
        "expires": maybe_when(token.expires_ms),
        "used": maybe_when(token.used_ms),
    }
