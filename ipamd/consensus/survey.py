"""Owns reading a journal's directory without changing it: where each record lies, and what is wrong, in sentences.

Two kinds of damage are told apart. A tail that was torn by a power loss was never acknowledged: it is cut. Damage below
what was on the disk already means that the log cannot be trusted: the member refuses to start on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ipamd.consensus.failures import other_format
from ipamd.consensus.files import Files
from ipamd.consensus.records import FORMAT, MARK, Record, decode_head, decode_record
from ipamd.consensus.segments import SUFFIX, Contents

WAY_OUT = (
    "if other members have the state: ipamctl cluster remove it, empty its data directory, and start it with --join; "
    "if none has, put the whole data directory back from a copy"
)


class Finding(NamedTuple):
    """Something that is not as it should be. `fatal`: a member must not start on it."""

    sentence: str
    fatal: bool
    is_other_format: bool = False
    """Whole, and of a version that this program does not read: nothing of it is to be mended."""


@dataclass(slots=True)
class Scanned:
    """What one file holds, and what is wrong with it."""

    path: Path
    contents: Contents
    synced: int = 0
    """The highest index that a record here says was synced."""

    headless: bool = False
    """Its head was never whole, and nothing follows: it was about to be made."""

    torn: bool = False
    """Something lies behind the whole records."""

    findings: list[Finding] = field(default_factory=list)


def survey(directory: Path, files: Files, skip: int = 0) -> list[Scanned]:
    """The segments of a journal, oldest first, but for the `skip` oldest. Raises OSError."""
    found = [_scan_file(path, files) for path in segment_paths(directory, files)[skip:]]
    for older, newer in pairwise(found):
        _judge_older(older)
        first, last = newer.contents.first, older.contents.last
        if first != last + 1 and not newer.headless:
            sentence = f"{newer.path} begins at index {first}, but {older.path} ends at {last}"
            newer.findings.append(Finding(sentence, fatal=True))
    return found


def segment_paths(directory: Path, files: Files) -> list[Path]:
    """The files of a journal, oldest first. Raises OSError."""
    return [directory / name for name in files.names(directory) if name.endswith(SUFFIX)]


def final_index(path: Path, files: Files) -> int | None:
    """The index of the whole record that a file ends with, whatever is before it. None: it ends otherwise."""
    data = read_whole(path, files)
    at, final = -1, None
    while (found := _later_record(data, at + 1)) is not None:
        at, final = found
    if final is None or data[at + final.size_bytes :].strip(b"\0"):
        return None
    return final.index


def read_whole(path: Path, files: Files) -> bytes:
    """What a file holds. Raises OSError."""
    file = files.open(path, writable=False)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def _judge_older(older: Scanned) -> None:
    """Only the newest file can be torn: all others were synced before the next was made."""
    if older.torn or older.headless:
        sentence = f"{older.path} is damaged behind index {older.contents.last}, and a newer file follows it"
        older.findings = [*(f for f in older.findings if f.fatal), Finding(sentence, fatal=True)]


def _scan_file(path: Path, files: Files) -> Scanned:
    try:
        first = int(path.name.removesuffix(SUFFIX))
    except ValueError:
        return Scanned(path, Contents(0), findings=[Finding(f"{path} is not a name of the journal", fatal=True)])
    data = read_whole(path, files)
    return scan(path, first, data.rstrip(b"\0"), data)


def scan(path: Path, first: int, used: bytes, data: bytes) -> Scanned:
    """Read a segment; `used` is `data` without the zeros at its end, which a record's own data may end with."""
    found = Scanned(path, Contents(first))
    head = decode_head(data)
    if head is None:
        _judge_head(found, data)
    elif head[0] != FORMAT:
        found.findings.append(Finding(other_format(path, head[0], FORMAT), fatal=True, is_other_format=True))
    elif head[1] != first:
        sentence = f"{path} begins at index {head[1]}, which is not what it is named after"
        found.findings.append(Finding(sentence, fatal=True))
    else:
        _scan_records(found, data)
        if found.contents.end < len(used) and not found.findings:
            _judge_tail(found, data)
    return found


def _judge_head(found: Scanned, data: bytes) -> None:
    """The head is on the disk before the first record is written, so a record means that it was whole once."""
    if _later_record(data, 0) is None:
        found.headless = True
        found.findings.append(Finding(f"{found.path} was not finished when it was made", fatal=False))
    else:
        found.findings.append(Finding(f"the head of {found.path} is damaged", fatal=True))


def _scan_records(found: Scanned, data: bytes) -> None:
    contents, term = found.contents, 0
    while (record := decode_record(data, contents.end)) is not None:
        if record.index != contents.last + 1 or record.term < term:
            sentence = (
                f"{found.path} holds entry {record.index} of term {record.term} at byte {contents.end}, "
                f"where entry {contents.last + 1} of term {term} or later belongs"
            )
            found.findings.append(Finding(sentence, fatal=True))
            return
        term = record.term
        contents.add(record.size_bytes, term)
        found.synced = max(found.synced, record.synced)


def _judge_tail(found: Scanned, data: bytes) -> None:
    """Something lies behind the whole records: torn, unless a later record knows that it was on the disk."""
    damaged, end = found.contents.last + 1, found.contents.end
    at = end
    while (later := _later_record(data, at + 1)) is not None:
        at, record = later
        if record.synced >= damaged:
            sentence = (
                f"entry {damaged} in {found.path} is damaged at byte {end}, and it was whole once, "
                f"for entry {record.index} behind it says so"
            )
            found.findings.append(Finding(sentence, fatal=True))
            return
    found.torn = True
    sentence = f"{found.path} ends in a torn record behind index {damaged - 1}, at byte {end}"
    found.findings.append(Finding(sentence, fatal=False))


def _later_record(data: bytes, at: int) -> tuple[int, Record] | None:
    """The first whole record at or behind `at`, with its place."""
    at = data.find(MARK, at)
    while at >= 0:
        record = decode_record(data, at)
        if record is not None:
            return at, record
        at = data.find(MARK, at + 1)
    return None
