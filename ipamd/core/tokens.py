"""Owns the commands about tokens: made, fetched by a node, used, revoked, and forgotten long after their end.

A token ends by the wall clock of the log, which is the same on every member: no member's own clock counts.
"""

from __future__ import annotations

from ipamd.core.commands import DropToken, NoteUses, PutToken
from ipamd.core.draft import Draft
from ipamd.core.model import EventKind, Role, Token
from ipamd.core.outcomes import Code, Done, Outcome, Refused, TokenStored
from ipamd.core.values import replace

_DAY_S = 86_400
TTL_S: dict[Role, int | None] = {
    Role.READER: 90 * _DAY_S,
    Role.OPERATOR: 90 * _DAY_S,
    Role.ADMIN: 90 * _DAY_S,
    Role.ENROL: _DAY_S,
    Role.NODE: None,
}
"""How long a token lasts unless its maker says otherwise. None: until it is revoked, or its node forgotten."""

USE_KEPT_MS = 3_600_000
"""The time of a token's last use is written at most once an hour."""

ENDED_KEPT_MS = 30 * _DAY_S * 1000
"""How long an expired token is still listed."""

DROPPED_AT_ONCE = 256


def put_token(draft: Draft, command: PutToken) -> Outcome:
    """Keep a token's digest, from now until it ends. A node that fetches its own again is told what it has."""
    token = born(draft, command.token, command.ttl_s)
    twin = draft.view.token_of_digest(token.digest)
    if twin is not None:
        if command.enrolling and (twin.role, twin.node) == (token.role, token.node):
            return TokenStored(twin)
        return Refused(Code.INVALID_REQUEST, "another token has this secret")
    refused = _known_already(draft, token.node) if command.enrolling and token.node is not None else None
    if refused is not None:
        return refused
    _drop_ended(draft)
    draft.put(token)
    draft.event(EventKind.TOKEN_CREATED, node=token.node, detail=_told(token))
    return TokenStored(token)


def born(draft: Draft, token: Token, ttl_s: int | None) -> Token:
    """A new token whose time begins with this entry. `ttl_s` None: it does not end."""
    now_ms = draft.stamp.wall_ms
    return replace(token, created_ms=now_ms, expires_ms=None if ttl_s is None else now_ms + ttl_s * 1000)


def drop_token(draft: Draft, command: DropToken) -> Outcome:
    """Revoke a token."""
    token = draft.view.token(command.token_id)
    if token is None:
        return Refused(Code.NOT_FOUND, f"there is no token {command.token_id}")
    _revoke(draft, token)
    return Done()


def note_uses(draft: Draft, command: NoteUses) -> Outcome:
    """Keep that tokens are in use. Whatever is named, what ended long ago goes."""
    now_ms = draft.stamp.wall_ms
    for token_id in dict.fromkeys(command.token_ids):
        token = draft.view.token(token_id)
        if token is not None and not has_ended(token, now_ms) and wants_noting(token, now_ms):
            draft.put(replace(token, used_ms=now_ms))
    _drop_ended(draft)
    return Done()


def has_ended(token: Token, now_ms: int) -> bool:
    """Whether a token counts no more."""
    return token.expires_ms is not None and token.expires_ms <= now_ms


def wants_noting(token: Token, now_ms: int) -> bool:
    """Whether a use now is to be written: the first, and one an hour later."""
    return token.used_ms is None or now_ms - token.used_ms >= USE_KEPT_MS


def move_tokens(draft: Draft, node: str, to: str) -> None:
    """A node has another name: its tokens are good for that."""
    for token in draft.view.tokens_of_node(node):
        draft.put(replace(token, node=to))


def revoke_tokens(draft: Draft, node: str) -> bool:
    """A node is forgotten: its tokens open nothing more. Whether it had any."""
    tokens = draft.view.tokens_of_node(node)
    for token in tokens:
        _revoke(draft, token)
    return bool(tokens)


def _known_already(draft: Draft, name: str) -> Refused | None:
    """A name is given once: whoever holds the secret of all nodes must not become one that is there."""
    node = draft.view.node(name)
    if draft.view.tokens_of_node(name):
        why = f"node {name} is enrolled already"
    elif node is not None and (node.newest_boot or node.reported_ms is not None):
        why = f"node {name} is known already, though not by enrolment"
    else:
        return None
    way = (
        f"if it was set up anew: ipamctl node forget {name}; if it still has pods:"
        f" ipamctl token create {name.rpartition(':')[2]} --role node --node {name}"
    )
    return Refused(Code.ENROLLED, f"{why}; {way}")


def _revoke(draft: Draft, token: Token) -> None:
    draft.drop(token)
    draft.event(EventKind.TOKEN_REVOKED, node=token.node, detail=_told(token))


def _drop_ended(draft: Draft) -> None:
    for token in draft.view.ended_tokens(draft.stamp.wall_ms - ENDED_KEPT_MS, DROPPED_AT_ONCE):
        draft.drop(token)


def _told(token: Token) -> str:
    return f"{token.id} {token.role} {token.name}"
