"""Owns who a caller is, and the rule whether a role may use a route."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import lru_cache

from ipamd.core.model import Role
from ipamd.errors import ApiError
from ipamd.service.tokens import Tokens


class Access(Enum):
    """How callers of a listener are told apart."""

    SOCKET = "socket"
    """The node socket: whoever can open the file is admin."""

    TOKENS = "tokens"
    """TCP: a bearer token is needed."""

    OPEN = "open"
    """TCP with `--insecure`: whoever connects is admin."""


class Least(IntEnum):
    """The least that a route asks for."""

    ANYBODY = 0
    READER = 1
    OPERATOR = 2
    ADMIN = 3


class ForNodes(Enum):
    """What a route is to the bearer of a `node` token, who stands beside the three."""

    NO = "no"
    ANY = "any"
    OWN = "own"
    """For its own node's things; the handler asks for that."""


_RANK = {Role.READER: Least.READER, Role.OPERATOR: Least.OPERATOR, Role.ADMIN: Least.ADMIN}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `by` is for events, `scope` keeps the idempotency keys of two callers apart."""

    by: str
    scope: str
    role: Role
    node: str | None = None
    """The one node that a `node` token is bound to."""

    local: bool = False
    """Came over the node socket: its namespaces are those of this host."""

    def may(self, least: Least, nodes: ForNodes, *, enrols: bool = False) -> bool:
        """Whether the caller may use a route. `enrols`: it is what a token of the role `enrol` is for."""
        if enrols and self.role is Role.ENROL:
            return True
        if self.role is Role.NODE:
            return least is Least.ANYBODY or nodes is not ForNodes.NO
        return _RANK.get(self.role, Least.ANYBODY) >= least

    def own(self, node: str | None) -> None:
        """Refuse a node token another node's things. Raises ApiError."""
        if self.role is Role.NODE and node != self.node:
            raise ApiError("forbidden", f"this token is bound to node {self.node}")


SOCKET_CALLER = Caller("socket", "socket", Role.ADMIN, local=True)
OPEN_CALLER = Caller("anonymous", "anonymous", Role.ADMIN)
NOBODY = Caller("nobody", "nobody", Role.ENROL)


@lru_cache(maxsize=16)
def caller_on(node: str) -> Caller:
    """Who came over the node socket of a host: events tell which host that is."""
    return replace(SOCKET_CALLER, by=f"{SOCKET_CALLER.by}:{node}")


_FIXED = {Access.SOCKET: SOCKET_CALLER, Access.OPEN: OPEN_CALLER}


_MISSING = "this needs a token, and none was sent (Authorization: Bearer TOKEN; ipamctl and the plugin: token-file)"
_UNKNOWN = "the token that was sent is unknown, revoked or expired"


def identify(access: Access, authorization: str | None, tokens: Tokens) -> Caller | None:
    """Who sent a request; None: nobody that is known."""
    fixed = _FIXED.get(access)
    if fixed is not None:
        return fixed
    secret = _secret_in(authorization)
    token = None if secret is None else tokens.bearer(secret)
    if token is None:
        return None
    tokens.used(token)
    return Caller(f"token:{token.name}", f"token:{token.id}", token.role, token.node)


def why_not(authorization: str | None, tokens: Tokens) -> str:
    """Why what was sent lets nobody in."""
    if authorization is None:
        return _MISSING
    secret = _secret_in(authorization)
    token = None if secret is None else tokens.expired(secret)
    return _UNKNOWN if token is None else f"the token {token.name} has expired (ipamctl token create makes another)"


def _secret_in(authorization: str | None) -> str | None:
    scheme, _, secret = (authorization or "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" and secret else None
