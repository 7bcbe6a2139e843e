"""Owns who the members are for this one, and who is let in: from its state, or from how it began.

A member that is to found a cluster with others waits until each of them has said that it is empty too, and only then
forms it: two halves that cannot see each other never found two.
"""

from __future__ import annotations

import logging
from pathlib import Path

from ipamd.consensus.files import Files
from ipamd.consensus.peers import FORMAT, Alone, Beginning, Gather, Hello, Join, Refusal, Why
from ipamd.consensus.roster import Roster, read_roster, write_roster
from ipamd.core.levels import LEVEL
from ipamd.core.members import too_old
from ipamd.core.model import Member
from ipamd.core.ports import StateMachine
from ipamd.core.values import replace

logger = logging.getLogger(__name__)


class Membership:
    """The members as this one knows them."""

    def __init__(self, me: Member, beginning: Beginning, machine: StateMachine, directory: Path, files: Files) -> None:
        """Raises StartRefused, JournalFull, JournalFailed, OSError."""
        self.me = replace(me, level=LEVEL)
        self.removed: str | None = None
        """That this member was removed, as a sentence."""

        self._machine = machine
        self._directory = directory
        self._files = files
        self._refused: dict[str, str] = {}
        self._hellos: dict[str, Hello] = {}
        self._listed: dict[str, Member] = {}
        self._roster = self._begin(beginning)
        self.changed()

    def _begin(self, beginning: Beginning) -> Roster | None:
        kept = read_roster(self._directory, self._files)
        if self._machine.members:
            return kept
        if isinstance(beginning, Join):
            return self._keep(Roster(beginning.members, beginning.added_at))
        if kept is not None:
            return kept
        if isinstance(beginning, Alone):
            return Roster((self.me,))
        return self._gather(beginning)

    def _gather(self, beginning: Gather) -> Roster | None:
        self._listed = {peer.name: peer for peer in beginning.peers}
        self._listed[self.me.name] = self.me
        return self._form() if len(self._listed) == 1 else None

    # Who counts.

    @property
    def members(self) -> tuple[Member, ...]:
        """The members in force; empty while the first ones are gathered.

        Who was taken in later goes by what it was told until its state has come that far.
        """
        told = self._roster.members if self._roster else ()
        return told if self._is_new else self._machine.members or told

    @property
    def _is_new(self) -> bool:
        """Whether this member's state is of a time when it was none yet."""
        return self._roster is not None and self._machine.applied[0] < self._roster.added_at

    @property
    def voting_peers(self) -> set[str]:
        """Other members that have a vote."""
        return {member.name for member in self.members if member.voter} - {self.me.name}

    @property
    def reached(self) -> tuple[Member, ...]:
        """Whom to be connected with: the members, or those who are to be."""
        return self.members or tuple(self._listed.values())

    @property
    def guests(self) -> tuple[Member, ...]:
        """Who is let in though the state does not know it: it is of this cluster, and its state is ahead of this one.

        It was taken in while this member lagged, and may lead now: then nobody else could tell this one of it.
        """
        heard = self._hellos.values()
        return tuple(Member(one.name, one.member_id, one.raft, one.api, False) for one in heard if self._is_guest(one))

    def find(self, name: str | None) -> Member | None:
        """A member, or a guest, by its name."""
        return next((member for member in (*self.guests, *self.members) if member.name == name), None)

    @property
    def _cluster_id(self) -> str | None:
        """Which cluster this is; before its state says so, what a member says that is known by its id.

        Else a first member that lagged from the beginning would refuse all who were taken in later, and wait for ever
        if one of them leads.
        """
        if self._machine.cluster_id is not None:
            return self._machine.cluster_id
        ids = {(member.name, member.member_id) for member in self.members}
        told = (hello for hello in self._hellos.values() if (hello.name, hello.member_id) in ids)
        return next((hello.cluster_id for hello in told if hello.cluster_id is not None), None)

    def _is_guest(self, hello: Hello) -> bool:
        mine, known = self._cluster_id, self._known(hello.name)
        unknown = known is None or known.member_id not in ("", hello.member_id)
        return unknown and mine is not None and hello.cluster_id == mine and hello.applied > self._machine.applied[0]

    def _known(self, name: str) -> Member | None:
        return next((member for member in self.reached if member.name == name), None)

    @property
    def bound(self) -> bool:
        """Whether the members know this one by its id."""
        return any((member.name, member.member_id) == (self.me.name, self.me.member_id) for member in self.members)

    @property
    def trouble(self) -> str | None:
        """Why this member is no part of a cluster yet, as a sentence; None: it is."""
        if self._refused and self._machine.applied[0] <= 1:
            return next(iter(self._refused.values()))
        if self.members:
            return None
        missing = sorted(set(self._listed) - set(self._hellos) - {self.me.name})
        return f"waiting for {', '.join(missing)}: a new cluster forms once each of its first members has answered"

    # Who is let in.

    def hello(self) -> Hello:
        """What this member says first."""
        me, machine = self.me, self._machine
        told = {hello.name: hello.raft for hello in self._hellos.values()}
        others = tuple((one.name, told.get(one.name, one.raft)) for one in self.reached if one.name != me.name)
        position = (machine.cluster_id, machine.applied[0])
        return Hello(FORMAT, me.name, me.member_id, *position, me.raft, me.api, others, LEVEL)

    def greet(self, hello: Hello) -> Refusal | None:
        """Why who says this is not let in; None: it is."""
        mine = self._cluster_id
        known = self._known(hello.name)
        if hello.format != FORMAT:
            return self._refusal(
                Why.FORMAT, f"{self.me.name} speaks format {FORMAT}, {hello.name} format {hello.format}"
            )
        if hello.level < self._machine.level:
            return self._refusal(Why.OLD, too_old(hello.name))
        if mine is not None and hello.cluster_id not in (None, mine):
            return self._refusal(Why.CLUSTER, f"{hello.name} belongs to another cluster than {self.me.name}")
        if hello.name != self.me.name and self._is_guest(hello):
            return None
        if known is None or hello.name == self.me.name:
            return self._refusal(Why.NOT_A_MEMBER, f"{hello.name} is no member of the cluster of {self.me.name}")
        if known.member_id not in ("", hello.member_id):
            sentence = f"member {hello.name} lost its data: ipamctl cluster remove {hello.name}, then --join"
            return self._refusal(Why.LOST_DATA, sentence)
        return None

    def _refusal(self, why: Why, sentence: str) -> Refusal:
        return Refusal(why, sentence, self._machine.applied[0])

    def heard(self, hello: Hello) -> bool:
        """A member was greeted; whether there is somebody new to go by. Raises JournalFull, JournalFailed."""
        self._refused.pop(hello.name, None)
        self._hellos[hello.name] = hello
        if self.members or hello.name not in self._listed:
            return self._is_guest(hello)
        if hello.cluster_id is None and set(self._listed) - set(self._hellos) - {self.me.name}:
            return False
        self._roster = self._form()
        return True

    def refused(self, name: str, refusal: Refusal) -> None:
        """A member did not let this one in. Who is ahead and does not know it has seen its removal."""
        if self._refused.get(name) != refusal.sentence:
            logger.warning("%s does not let this member in: %s", name, refusal.sentence)
        self._refused[name] = refusal.sentence
        added_at = self._roster.added_at if self._roster else 0
        ahead = refusal.applied >= max(self._machine.applied[0], added_at, 2)
        if refusal.why is Why.NOT_A_MEMBER and ahead and self.members:
            self.removed = (
                f"member {self.me.name} was removed from its cluster, as {name} says at index {refusal.applied}"
            )

    def unlike(self) -> Hello | None:
        """A member that says of itself what the state does not know: another address or level, or its id."""
        mine = [self.hello()] if self.me.member_id else []
        kept = {member.name: member for member in self._machine.members}
        for hello in (*mine, *self._hellos.values()):
            member = kept.get(hello.name)
            if member is None or member.member_id not in ("", hello.member_id):
                continue
            said = (hello.member_id, hello.raft, hello.api, hello.level)
            if (member.member_id, member.raft, member.api, member.level) != said:
                return hello
        return None

    def gone(self, name: str) -> None:
        """The connection to a member is gone: what it said of itself may change."""
        if self.members:
            self._hellos.pop(name, None)

    def changed(self) -> None:
        """The state may have other members now."""
        names = {member.name for member in self._machine.members}
        if names and self.me.name not in names and not self._is_new:
            way_back = "to come back: empty its data directory, then --join"
            self.removed = f"member {self.me.name} was removed from its cluster; {way_back}"

    def _form(self) -> Roster:
        """The first members: as they are listed, with the ids that they told."""
        said = {name: (hello.member_id, hello.level) for name, hello in self._hellos.items()}
        said[self.me.name] = (self.me.member_id, LEVEL)
        listed = [(self._listed[name], *said.get(name, ("", 1))) for name in sorted(self._listed)]
        members = [Member(one.name, id_, one.raft, one.api, level=level) for one, id_, level in listed]
        logger.info("the first members of the cluster are %s", ", ".join(member.name for member in members))
        return self._keep(Roster(tuple(members)))

    def _keep(self, roster: Roster) -> Roster:
        write_roster(self._directory, roster, self._files)
        return roster
