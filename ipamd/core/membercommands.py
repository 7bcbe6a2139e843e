"""Owns the commands about the members of the cluster; `commands` has them in its list."""

from __future__ import annotations

from ipamd.core.model import Member
from ipamd.core.origin import Origin
from ipamd.core.values import Value


class AddMember(Value):
    """Take a member in: it follows without a vote until it is promoted."""

    origin: Origin
    member: Member


class PromoteMember(Value):
    """Give a member a vote. The id says which one is meant: the name may be another's by now."""

    origin: Origin
    name: str
    member_id: str


class RemoveMember(Value):
    """Take a member out: it stops when it learns of it."""

    origin: Origin
    name: str


class BindMember(Value):
    """Keep where a member is reached now, its program's level, and its id if none is known yet."""

    origin: Origin
    name: str
    member_id: str
    raft: str
    api: str
    level: int = 1
