"""Damaged files: what was torn is cut, what was whole once and is not any more is refused, and neither is served."""

from __future__ import annotations

import pytest

from ipamd.consensus.facts import read_facts
from ipamd.consensus.failures import StartRefused
from ipamd.consensus.records import HEAD_BYTES, Entry
from tests.consensus.journals import DIRECTORY, content, entry, fill, open_journal
from tests.consensus.simdisk import Inode, SimDisk

NEWEST = DIRECTORY / f"{1:020d}.log"


def disk_with(content_: bytes, term: int = 1) -> SimDisk:
    disk = SimDisk()
    open_journal(disk).setCurrentTerm(term, "a")
    disk.seen[NEWEST] = Inode(bytearray(content_), bytearray(content_))
    return disk


def written(*batches: int) -> tuple[bytes, list[Entry], list[int]]:
    """The bytes of a file to which so many entries a sync were added; the entries; where each batch ends."""
    disk = SimDisk()
    journal = open_journal(disk)
    journal.setCurrentTerm(1, "a")
    ends = []
    for size in batches:
        for _ in range(size):
            journal.add(*entry(journal.last + 1))
        journal.sync()
        ends.append(len(bytes(disk.seen[NEWEST].page).rstrip(b"\0")))
    return bytes(disk.seen[NEWEST].page), content(journal), ends


def test_torn_tails_of_every_length_are_cut() -> None:
    data, entries, ends = written(1, 1, 1, 1)
    for length in range(ends[2], ends[3]):
        for padding in (0, 100):
            disk = disk_with(data[:length] + bytes(padding))
            before = read_facts(DIRECTORY, disk)
            journal = open_journal(disk)
            assert content(journal) == entries[:3], length
            assert (before.first, before.last) == (1, 3)
            assert [finding.fatal for finding in before.findings] == ([False] if length > ends[2] else [])
            added = fill(journal, 2)
            assert content(open_journal(disk)) == entries[:3] + added


def test_a_batch_that_was_torn_in_its_middle_is_cut_there() -> None:
    data, entries, _ = written(2, 4)
    torn = bytearray(data)
    at = data.index(entries[3][0])
    torn[at : at + 8] = bytes(8)
    journal = open_journal(disk_with(bytes(torn)))
    assert content(journal) == entries[:3]


def test_a_flipped_byte_anywhere_is_never_served() -> None:
    data, entries, ends = written(1, 1, 2, 1)
    refused, cut = set[int](), set[int]()
    for at in range(ends[-1]):
        flipped = bytearray(data)
        flipped[at] ^= 0x40
        disk = disk_with(bytes(flipped))
        try:
            found = content(open_journal(disk))
        except StartRefused:
            refused.add(at)
            assert any(finding.fatal for finding in read_facts(DIRECTORY, disk).findings)
            continue
        cut.add(at)
        assert found == entries[:4], at
    assert refused == set(range(ends[2]))
    assert cut == set(range(ends[2], ends[3]))


def test_damage_below_is_refused_with_where_and_what_to_do() -> None:
    data, entries, _ = written(1, 1, 1)
    flipped = bytearray(data)
    flipped[data.index(entries[1][0])] ^= 1
    with pytest.raises(StartRefused, match=r"entry 2 in .* is damaged at byte \d+, and it was whole once.* copy"):
        open_journal(disk_with(bytes(flipped)))


def test_damage_in_an_older_file_is_refused_even_at_its_end() -> None:
    disk = SimDisk()
    fill(open_journal(disk), 30)
    older = disk.seen[NEWEST].page
    end = len(bytes(older).rstrip(b"\0"))
    older[end - 1] ^= 1
    with pytest.raises(StartRefused, match="a newer file follows it"):
        open_journal(disk)


def test_a_file_that_was_just_about_to_be_made_is_dropped() -> None:
    disk = SimDisk()
    added = fill(open_journal(disk), 30)
    torn = DIRECTORY / f"{31:020d}.log"
    for head in (b"", b"IPAM", bytes(600)):
        disk.seen[torn] = Inode(bytearray(head), bytearray(head))
        assert content(open_journal(disk)) == added
        assert torn not in disk.seen


def test_the_zeros_at_the_end_of_data_belong_to_it() -> None:
    disk = SimDisk()
    journal = open_journal(disk)
    journal.setCurrentTerm(1, "a")
    journal.add(bytes(50), 1, 1)
    journal.sync()
    assert content(open_journal(disk)) == [(bytes(50), 1, 1)]


def test_looking_changes_nothing() -> None:
    data, _, ends = written(1, 1, 1)
    disk = disk_with(data[: ends[1] + 7])
    before = {path: bytes(inode.page) for path, inode in disk.seen.items()}
    facts = read_facts(DIRECTORY, disk)
    assert {path: bytes(inode.page) for path, inode in disk.seen.items()} == before
    assert (facts.first, facts.last, facts.term_at(2), facts.term_at(3)) == (1, 2, 1, None)
    assert "torn" in facts.findings[0].sentence
    assert ends[0] > HEAD_BYTES


def test_facts_tell_of_a_damaged_and_of_a_lost_vote() -> None:
    disk = SimDisk()
    fill(open_journal(disk), 3, term=5)
    vote = DIRECTORY / "vote"
    disk.seen[vote].page[9] ^= 1
    assert [f.fatal for f in read_facts(DIRECTORY, disk).findings] == [True, True]
    disk.unlink(vote)
    (finding,) = read_facts(DIRECTORY, disk).findings
    assert "reaches term 5, but this member's own term is none" in finding.sentence
