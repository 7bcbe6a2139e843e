"""Owns the list of what can happen: the kinds of events."""

from __future__ import annotations

from enum import StrEnum


class EventKind(StrEnum):
    """What happened. Kinds with an address are also its history.

    A holding begins with BOUND or HELD, whichever comes first; MOVED ends it on one node and begins it on another;
    RELEASED ends it. An attachment with several addresses makes one event for each.
    """

    POOL_CREATED = "pool_created"
    POOL_UPDATED = "pool_updated"
    POOL_DELETED = "pool_deleted"
    BOUND = "bound"
    HELD = "held"
    REBOUND = "rebound"
    MOVED = "moved"
    RELEASED = "released"
    CLAIMED = "claimed"
    """What an import did not know of a holder became known: pod, node or interface."""

    QUARANTINED = "quarantined"
    UNQUARANTINED = "unquarantined"
    NODE_RENAMED = "node_renamed"
    NODE_FORGOTTEN = "node_forgotten"
    NODE_REBOOTED = "node_rebooted"
    NODE_LOST = "node_lost"
    NODE_BACK = "node_back"
    NODE_NAME_CLASH = "node_name_clash"
    MASS_SILENCE = "mass_silence"
    MASS_SILENCE_CONFIRMED = "mass_silence_confirmed"
    CONTESTED = "contested"
    DEL_REFUSED = "del_refused"
    SETTINGS_CHANGED = "settings_changed"
    TOKEN_CREATED = "token_created"  # noqa: S105 - a kind of event, not a secret
    TOKEN_REVOKED = "token_revoked"  # noqa: S105 - likewise
    MEMBER_ADDED = "member_added"
    MEMBER_PROMOTED = "member_promoted"
    MEMBER_REMOVED = "member_removed"
    MEMBER_BOUND = "member_bound"
    RESTORED = "restored"
    POOL_CONFIRMED = "pool_confirmed"
    CONFLICT = "conflict"
    """A living container uses an address that a restored backup records for another pod."""

    CONFLICT_ENDED = "conflict_ended"
    NOTE = "note"
    """Somebody wrote it; it came with level 2."""
