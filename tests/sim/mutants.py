"""Owns the mutants: what the program would be without one of its cures. The simulation must catch each of them.

H1 to H8 are hazards of the Raft library as it comes; the others are cures of our own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from ipamd.consensus import hardstate, journal, records, segments, survey
from ipamd.consensus.files import File
from ipamd.consensus.guarded import Guard
from ipamd.consensus.journal import Journal
from ipamd.consensus.peers import Message
from ipamd.consensus.records import Record
from ipamd.consensus.replica import Replica
from ipamd.consensus.segments import Segment
from ipamd.core import add, release
from ipamd.storage import snapshots
from tests.sim import fetching
from tests.sim.world import simulate

Patches = list[tuple[Any, str, Any]]


class Mutant(NamedTuple):
    """What is taken out, and in which clusters and with which faults that shows soonest."""

    without: str
    patches: Callable[[], Patches]
    members: int | None = 3
    only: tuple[str, ...] = ()
    """Kinds of faults to choose from; none: as the seed says."""


class Hunt(NamedTuple):
    """How a mutant fared."""

    caught: bool
    sentence: str
    runs: int
    took_s: float


def _nothing(*_arguments: object, **_names: object) -> None:
    """What the mutants do instead."""


def _unsynced_journal() -> Patches:
    return [(Segment, "datasync", _nothing)]


def _unsynced_vote() -> Patches:
    def fill(self: Any, path: Path, file: File, ballot: hardstate.Ballot) -> None:
        file.pwrite(hardstate.encode_ballot(ballot), 0)

    return [(hardstate.HardState, "_fill", fill), (hardstate, "sync_names", _nothing)]


def _restart_clears_newer() -> Patches:
    opened = Replica._open

    def open_and_clear(self: Any, *arguments: Any) -> None:
        opened(self, *arguments)
        applied = self._machine.applied[0]
        if self._journal.first <= applied < self._journal.last:
            self._journal._cut(applied + 1)

    return [(Replica, "_open", open_and_clear)]


def _unsynced_names() -> Patches:
    return [(module, "sync_names", _nothing) for module in (segments, journal)]


def _deletes_matching() -> Patches:
    def delete(self: Journal, entryFrom: int) -> None:  # noqa: N803 - the library's name
        self._cut(self.first + entryFrom)

    got = Guard._got_acknowledgement

    def go_back(self: Any, name: str, message: Message) -> None:
        with patch.object(self._raft, "set_next_index", _nothing):
            got(self, name, message)

    return [(Journal, "deleteEntriesFrom", delete), (Guard, "_got_acknowledgement", go_back)]


def _commits_unverified() -> Patches:
    got_entries = Guard._got_entries

    def believe(self: Any, name: str, message: Message) -> None:
        deliver = self._raft.deliver

        def deliver_as_sent(name: str, changed: Message) -> None:
            deliver(name, changed | {"commit_index": message["commit_index"]})

        with patch.object(self._raft, "deliver", deliver_as_sent):
            got_entries(self, name, message)

    return [(Guard, "_got_entries", believe)]


def _counts_stale_acknowledgements() -> Patches:
    got = Guard._got_acknowledgement

    def believe(self: Any, name: str, message: Message) -> None:
        got(self, name, message | {"term": max(message["term"], self._raft.term)})

    return [(Guard, "_got_acknowledgement", believe)]


def _takes_broken_snapshots() -> Patches:
    return [(snapshots, "_check_hash", _nothing), (fetching, "BROKEN", 1.0), (fetching, "_break", _flip)]


def _flip(path: Path, chance: Any) -> None:
    """Another byte in something that somebody wrote: where text is, it is a pod's name or an address."""
    data = bytearray(path.read_bytes())
    places = [at for at in range(len(data) - 3) if data[at : at + 4] == b"ns/p"]
    data[chance.choice(places or [0]) + 1] ^= 1
    path.write_bytes(data)


def _no_mark() -> Patches:
    return [(add, "_refuse_late", _nothing)]


def _no_generation() -> Patches:
    def is_meant(attachment: Any, command: Any) -> bool:
        container = command.container_id
        return container is None or (attachment.owner is not None and attachment.owner.container_id == container)

    return [(release, "_is_meant", is_meant)]


def _trims_in_place() -> Patches:
    def trim(self: Journal, index: int) -> None:
        if self.can_trim(index):
            self.sync()
            kept = self.entries(self._segments[1].first, self.last, 1 << 30)
            while self._segments:
                oldest = self._segments.pop(0)
                oldest.close()
                segments.unlink(oldest.path, self._files)
            self._pending.clear()
            self._recent.clear()
            self._recent_bytes, self._first, self._last, self.durable = 0, None, None, kept[0][1] - 1
            for entry in kept:
                Journal.add(self, *entry)
            self.sync()

    return [(Journal, "trim", trim)]


def _no_crc() -> Patches:
    def decode(data: bytes, at: int = 0) -> Record | None:
        if len(data) < at + records.RECORD_BYTES or data[at : at + 4] != records.MARK:
            return None
        length, index, term, synced = records._FIELDS.unpack_from(data, at + records._RECORD.size)
        if at + records.RECORD_BYTES + length > len(data):
            return None
        return Record(data[at + records.RECORD_BYTES :][:length], index, term, synced)

    return [(survey, "decode_record", decode), (segments, "decode_record", decode)]


CUTS = ("isolate", "split", "cut_both_ways", "cut_one_way", "pause")

MUTANTS = {
    "h1": Mutant("the journal is synced before anything is acknowledged", _unsynced_journal),
    "h2": Mutant("term and vote are synced before they are used", _unsynced_vote),
    "h3": Mutant("a restart keeps the journal that is newer than the state", _restart_clears_newer),
    "h4": Mutant("the names of the journal's files are synced", _unsynced_names),
    "h5": Mutant("entries that match stay where they are", _deletes_matching, 3, ("slow_link", "die_at_a_step")),
    "h6": Mutant("a commit index counts as far as the logs are known to be one", _commits_unverified, 3, CUTS),
    "h7": Mutant("an acknowledgement counts in its own term only", _counts_stale_acknowledgements, 5, ("depose",)),
    "h8": Mutant("a snapshot is checked before it is installed", _takes_broken_snapshots),
    "no-mark": Mutant("a DEL leaves a mark that refuses late ADDs", _no_mark, 1),
    "no-generation": Mutant("a release names a generation", _no_generation, 1),
    "in-place-trim": Mutant("the journal is trimmed by whole files", _trims_in_place),
    "no-crc": Mutant("each record has a checksum", _no_crc),
}


@contextmanager
def without(name: str) -> Iterator[None]:
    """The program without one of its cures."""
    with ExitStack() as stack:
        for owner, attribute, replacement in MUTANTS[name].patches():
            stack.enter_context(patch.object(owner, attribute, replacement))
        yield


def hunt(name: str, limit_s: float) -> Hunt:
    """Run seeds until one breaks a law, for so long at most."""
    mutant, started_s = MUTANTS[name], time.monotonic()
    with without(name):
        for runs in count(1):
            result = simulate(runs, mutant.members, mutant.only)
            took_s = time.monotonic() - started_s
            if result.violation is not None:
                sentence = f"caught by seed {result.seed} with {result.members} members: {result.violation}"
                return Hunt(True, sentence, runs, took_s)
            if took_s > limit_s:
                break
    return Hunt(False, f"ALIVE: nothing shows that {mutant.without}", runs, took_s)
