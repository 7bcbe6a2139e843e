"""Files of a newer format are refused with a sentence that names the file, the format and the way out."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest

from ipamd.consensus import hardstate, records, roster, smallfile
from ipamd.consensus.failures import StartRefused
from ipamd.consensus.files import OsFiles
from ipamd.consensus.opening import open_segments
from ipamd.consensus.segments import Segment, path_of

FILES = OsFiles()


def test_a_segment_of_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "FORMAT", 2)
    segment = Segment.create(tmp_path, FILES, 1, 4096)
    segment.append([(b"entry", 1, 1)], 0)
    segment.close()
    monkeypatch.undo()
    with pytest.raises(StartRefused) as refused:
        open_segments(tmp_path, FILES)
    assert str(refused.value).startswith(
        f"{path_of(tmp_path, 1)} has format 2, this program reads format 1: start the version of ipamd that wrote it"
    )


def test_term_and_vote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardstate, "FORMAT", 2)
    hardstate.HardState(tmp_path, FILES).store(hardstate.Ballot(7, "n1"))
    monkeypatch.undo()
    with pytest.raises(StartRefused, match="vote has format 2, this program reads format 1: start the version"):
        hardstate.HardState(tmp_path, FILES)


def test_the_members_beside_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smallfile, "FORMAT", 2)
    roster.write_roster(tmp_path, roster.Roster(()), FILES)
    monkeypatch.undo()
    with pytest.raises(StartRefused, match="members has format 2, this program reads format 1: start the version"):
        roster.read_roster(tmp_path, FILES)


def test_what_only_looks_like_another_format_is_damaged(tmp_path: Path) -> None:
    smallfile.write(tmp_path / "members", b"{}", FILES)
    (tmp_path / "members").write_bytes(b"IPAMFILE" + crc32(b"").to_bytes(4, "little"))
    with pytest.raises(StartRefused, match="is damaged"):
        smallfile.read(tmp_path / "members", FILES)
