"""Owns the changes of members: one at a time, and in force once they are applied (the log sees to both)."""

from __future__ import annotations

from ipamd.core.commands import AddMember, BindMember, PromoteMember, RemoveMember
from ipamd.core.draft import Draft
from ipamd.core.model import EventKind, Member
from ipamd.core.outcomes import Code, Done, Outcome, Refused
from ipamd.core.values import replace


def add_member(draft: Draft, command: AddMember) -> Outcome:
    """Take a member in, without a vote. Who asks again under the same id is in already."""
    new = replace(command.member, voter=False)
    cluster = draft.view.cluster()
    if cluster is not None and new.level < cluster.level and new.member_id:
        return Refused(Code.OLD_MEMBER, too_old(new.name))
    there = {member.name: member for member in draft.view.members()}
    old = there.get(new.name)
    if old is not None and old.member_id in ("", new.member_id):
        return _move(draft, old, new)
    if old is not None:
        return Refused(
            Code.MEMBER_EXISTS,
            f"{new.name} is a member with another id: if it lost its data, run: ipamctl cluster remove {new.name}",
        )
    twin = next((member.name for member in there.values() if member.member_id == new.member_id != ""), None)
    if twin is not None:
        return Refused(Code.MEMBER_EXISTS, f"member {twin} has the id of {new.name}: a data directory is one member's")
    draft.put(new)
    _tell(draft, EventKind.MEMBER_ADDED, new)
    return Done()


def promote_member(draft: Draft, command: PromoteMember) -> Outcome:
    """Give a member a vote."""
    old = _find(draft, command.name)
    if old is None or old.member_id != command.member_id:
        return _unknown(command.name)
    if not old.voter:
        new = replace(old, voter=True)
        draft.put(new)
        _tell(draft, EventKind.MEMBER_PROMOTED, new)
    return Done()


def remove_member(draft: Draft, command: RemoveMember) -> Outcome:
    """Take a member out. The last one with a vote stays: nobody could change anything without it."""
    old = _find(draft, command.name)
    if old is None:
        return _unknown(command.name)
    if old.voter and sum(member.voter for member in draft.view.members()) == 1:
        return Refused(Code.LAST_MEMBER, f"{old.name} is the last member with a vote")
    draft.drop(old)
    _tell(draft, EventKind.MEMBER_REMOVED, old)
    return Done()


def bind_member(draft: Draft, command: BindMember) -> Outcome:
    """Keep a member's addresses, and its id where none is known."""
    old = _find(draft, command.name)
    if old is None:
        return _unknown(command.name)
    if old.member_id not in ("", command.member_id):
        return Refused(Code.MEMBER_EXISTS, f"{old.name} is a member with another id")
    return _move(draft, old, Member(old.name, command.member_id, command.raft, command.api, level=command.level))


def _move(draft: Draft, old: Member, new: Member) -> Outcome:
    moved = replace(new, voter=old.voter)
    if moved != old:
        draft.put(moved)
        _tell(draft, EventKind.MEMBER_BOUND, moved)
    return Done()


def too_old(name: str) -> str:
    """Why a member of a lower level than the log's cannot be one."""
    return f"{name} runs an older version of ipamd than its cluster has come to need: install the newer one on it"


def _find(draft: Draft, name: str) -> Member | None:
    return next((member for member in draft.view.members() if member.name == name), None)


def _unknown(name: str) -> Refused:
    return Refused(Code.NOT_FOUND, f"there is no member {name}")


def _tell(draft: Draft, kind: EventKind, member: Member) -> None:
    where = f"raft {member.raft} api {member.api}"
    draft.event(kind, detail=f"{member.name} {member.member_id} {where} level {member.level}")
