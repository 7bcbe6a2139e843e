"""Faults planted in a data directory: `ipamd doctor` finds each, and what it says it can repair is as it was before."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from ipamd.consensus.files import OsFiles
from ipamd.consensus.records import HEAD_BYTES
from ipamd.consensus.survey import survey
from ipamd.programs.doctor import doctor
from tests.main.test_serve import ask
from tests.support.disks import Disk
from tests.support.server import Server

ADD = {"pool": "p", "container_id": "c", "node": "n1"}
PODS = 12


class Patient(NamedTuple):
    """A copy of a sound data directory, with the server that would run on it, and what the state was."""

    server: Server
    digest: str

    @property
    def data_dir(self) -> Path:
        return self.server.data_dir

    @property
    def segment(self) -> Path:
        return next((self.data_dir / "journal").glob("*.log"))

    def sql(self, *statements: str) -> None:
        """Change the database behind ipamd's back."""
        with closing(sqlite3.connect(self.data_dir / "state.db")) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute("PRAGMA writable_schema = ON")
            for statement in statements:
                assert connection.execute(statement).rowcount != 0, statement
            connection.commit()

    def flip(self, path: Path, at: int) -> None:
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    def doctor(self, *flags: str) -> tuple[int, str]:
        return examined(self.data_dir, *flags)


def examined(data_dir: Path, *flags: str) -> tuple[int, str]:
    """Exit status and output of `ipamd doctor`."""
    ended = CliRunner().invoke(doctor, ["--data-dir", str(data_dir), *flags])
    assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
    return ended.exit_code, ended.output


def digest_in(told: str) -> str:
    return told.rpartition(", digest ")[2].partition(";")[0]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A data directory with pools, pods, events and a cooling address, from a server that was stopped."""
    server = Server(tmp_path_factory.mktemp("healthy"))
    with server.start():
        for name, subnet in (("p", "10.1.0.0/24"), ("q", "10.2.0.0/24"), ("v6", "2001:db8::/64")):
            assert ask(server, "POST", "/v1/pools", {"name": name, "subnet": subnet})[0] == 201
        for number in range(PODS):
            assert ask(server, "POST", "/v1/reservations", ADD | {"pod_ref": f"a/{number}"})[0] == 201
        assert ask(server, "DELETE", "/v1/reservations/p/a%2F3?force=true")[0] == 200
        assert server.stop() == 0
    return server


@pytest.fixture
def patient(healthy: Server, tmp_path: Path) -> Iterator[Patient]:
    server = Server(tmp_path)
    shutil.copytree(healthy.data_dir, server.data_dir)
    told = examined(server.data_dir)[1]
    with closing(sqlite3.connect(server.data_dir / "state.db")) as connection:
        assert connection.execute("SELECT count(*) FROM addresses").fetchone() == (PODS - 1,)
    yield Patient(server, digest_in(told))
    if server.process is not None and server.process.poll() is None:
        server.kill()


def torn(patient: Patient) -> None:
    """A power loss in the midst of a record."""
    end = survey(patient.segment.parent, OsFiles())[0].contents.end
    with patient.segment.open("r+b") as file:
        file.seek(end)
        file.write(b"\xf5jr\x01half a record")


def damaged_entry(patient: Patient) -> None:
    """A byte of an entry that the state has."""
    patient.flip(patient.segment, patient.segment.read_bytes().index(b"a/1"))


def lost_vote(patient: Patient) -> None:
    (patient.data_dir / "journal" / "vote").unlink()


def damaged_vote(patient: Patient) -> None:
    patient.flip(patient.data_dir / "journal" / "vote", 12)


def taken_is_free(patient: Patient) -> None:
    patient.sql("UPDATE free_spans SET first = x'0a010001' WHERE last = x'0a0100fe'")


def free_is_lost(patient: Patient) -> None:
    patient.sql("DELETE FROM free_spans")


def stale_index(patient: Patient) -> None:
    """An index that has missed a change of its table."""
    where = "name = 'ix_attachments_container_id'"
    newest = "WHERE id = (SELECT max(id) FROM attachments)"
    patient.sql(f"UPDATE attachments SET container_id = 'd' {newest}")
    patient.sql("CREATE TABLE aside AS SELECT * FROM sqlite_master WHERE " + where)
    patient.sql(f"DELETE FROM sqlite_master WHERE {where}")
    patient.sql(f"UPDATE attachments SET container_id = 'c' {newest}")
    patient.sql("INSERT INTO sqlite_master SELECT * FROM aside")
    patient.sql("DROP TABLE aside")


def lost_rows(patient: Patient) -> None:
    patient.sql("DELETE FROM addresses WHERE address = x'0a010002'")


def orphans(patient: Patient) -> None:
    patient.sql("DELETE FROM reservations WHERE pod_ref = 'a/5'")


def counter(patient: Patient) -> None:
    patient.sql("UPDATE meta SET last_id = 1")


def position_behind(patient: Patient) -> None:
    patient.sql("UPDATE meta SET applied_index = 5")


def overwritten_page(patient: Patient) -> None:
    with (patient.data_dir / "state.db").open("r+b") as file:
        file.seek(5 * 4096)
        file.write(b"\xa5" * 4096)


def overwritten_head(patient: Patient) -> None:
    with (patient.data_dir / "state.db").open("r+b") as file:
        file.write(b"\xa5" * 1024)


def lost_database(patient: Patient) -> None:
    for path in patient.data_dir.glob("state.db*"):
        path.unlink()


REPAIRED: dict[Callable[[Patient], None], tuple[str, str]] = {
    torn: ("ends in a torn record behind index", "cut off the journal's torn end"),
    damaged_entry: ("is damaged at byte", "drop the journal's 1 oldest file: the state has all that is damaged"),
    lost_vote: ("but this member's own term is none", "give this member the term 2 and no vote"),
    damaged_vote: ("(this member's term and vote) is damaged", "give this member the term 2 and no vote"),
    taken_is_free: ("free space: pool p, 10.1.0.0/24: 10.1.0.1-10.1.0.254 is kept as free", "work out the free space"),
    free_is_lost: ("is free, which is not kept", "work out the free space anew"),
    stale_index: ("indexes: ", "make the indexes of the database anew from its tables"),
    lost_rows: ("laws: attachment", "make the state anew from the journal, up to index"),
    orphans: ("references: row", "make the state anew from the journal, up to index"),
    counter: ("laws: id", "make the state anew from the journal, up to index"),
    position_behind: ("has bound an address, the position in the log stands at 5", "make the state anew from the"),
    overwritten_page: ("cannot be read: database disk image is malformed", "make the state anew from the journal"),
    overwritten_head: ("is not a SQLite database", "make the state anew from the journal, up to index"),
    lost_database: ("state.db is missing", "make the state anew from the journal, up to index"),
}


STARTED = {damaged_entry, damaged_vote, free_is_lost, lost_database}
"""Those after whose repair a server is started: the others leave what is equal to the state before."""


@pytest.mark.parametrize("fault", REPAIRED, ids=lambda fault: fault.__name__)
def test_what_it_says_it_can_repair_is_as_it_was(patient: Patient, fault: Callable[[Patient], None]) -> None:
    fault(patient)
    sentence, repair = REPAIRED[fault]
    before = {path: path.read_bytes() for path in patient.data_dir.rglob("*") if path.suffix in (".log", ".db")}
    code, told = patient.doctor()
    assert code == (0 if fault is torn else 1)
    assert sentence in told
    assert f"can be repaired (--apply): {repair}" in told
    assert "cannot be repaired here" not in told
    assert {path: path.read_bytes() for path in before} == before

    code, told = patient.doctor("--apply")
    assert (code, f"repaired: {repair}" in told) == (0, True), told
    assert digest_in(told) == patient.digest
    kept = patient.data_dir / "before-repair-1"
    for path, data in before.items():
        assert (kept / path.relative_to(patient.data_dir)).read_bytes() == data
    again = patient.doctor()[1]
    assert "nothing found" in again
    assert "can be repaired" not in again
    if fault in STARTED:
        serves(patient)


def test_a_repair_is_tried_beside_the_data_directory(
    patient: Patient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for another state; the system's place for temporary files may be small, here it is none at all."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    lost_rows(patient)
    before = directories(tmp_path)
    code, told = patient.doctor()
    assert (code, "can be repaired (--apply): make the state anew" in told) == (1, True), told
    assert directories(tmp_path) == before


def directories(place: Path) -> set[Path]:
    return {path for path in place.rglob("*") if path.is_dir()}


@pytest.mark.needs_disks
def test_a_data_directory_with_nothing_beside_it_on_its_disk_is_repaired_too(patient: Patient, tmp_path: Path) -> None:
    lost_rows(patient)
    with Disk(tmp_path / "disk", 64) as disk:
        shutil.copytree(patient.data_dir, disk.place, dirs_exist_ok=True)
        names = {path.name for path in tmp_path.iterdir()}
        code, told = examined(disk.place)
        assert (code, "can be repaired (--apply): make the state anew" in told) == (1, True), told
        code, told = examined(disk.place, "--apply")
        assert (code, digest_in(told)) == (0, patient.digest), told
        assert {path.name for path in tmp_path.iterdir()} == names


@pytest.mark.needs_disks
def test_where_there_is_no_room_to_try_a_repair_that_is_said(patient: Patient, tmp_path: Path) -> None:
    lost_rows(patient)
    with Disk(tmp_path / "disk", 40) as disk:
        shutil.copytree(patient.data_dir, disk.place / "data")
        with (disk.place / "ballast").open("wb", buffering=0) as ballast:
            for size in (1 << 20, 1 << 12):
                with suppress(OSError):
                    while True:
                        ballast.write(b"x" * size)
            ballast.truncate(ballast.tell() - (128 << 10))
        code, told = examined(disk.place / "data")
        assert code == 1
        assert "laws: attachment" in told
        assert "cannot be repaired here: there is no room to try whether the journal makes the state anew" in told
        assert {path.name for path in disk.place.iterdir()} == {"data", "ballast", "lost+found"}


def test_a_copy_never_takes_the_name_of_one_that_is_there(patient: Patient) -> None:
    """Somebody removed the first of two."""
    (patient.data_dir / "before-repair-2").mkdir()
    (patient.data_dir / "before-repair-2" / "state.db").touch()
    free_is_lost(patient)
    code, told = patient.doctor("--apply")
    assert (code, "before-repair-3" in told) == (0, True), told


def serves(patient: Patient) -> None:
    """A server starts on it and goes on where the state was."""
    server = patient.server.start()
    assert ask(server, "GET", "/v1/reservations/p/a%2F7")[0] == 200
    status, got = ask(server, "POST", "/v1/reservations", ADD | {"pod_ref": "a/new", "container_id": "new"})
    assert (status, got["attachments"][0]["addresses"]) == (201, [f"10.1.0.{PODS + 1}/24"])


def unapplied_entry(patient: Patient) -> None:
    """The database is older than the journal, and an entry between them is damaged."""
    patient.sql("UPDATE meta SET applied_index = applied_index - 3")
    patient.flip(patient.segment, patient.segment.read_bytes().index(b"a/11"))


def older_journal(patient: Patient) -> None:
    patient.sql("UPDATE meta SET applied_index = applied_index + 1000")


def another_log(patient: Patient) -> None:
    patient.sql("UPDATE meta SET applied_term = 9")


def newer_format(patient: Patient) -> None:
    with closing(sqlite3.connect(patient.data_dir / "state.db")) as connection:
        connection.execute("PRAGMA user_version = 99")


def newer_level(patient: Patient) -> None:
    """A newer version has put into the log what this one does not know."""
    patient.sql("UPDATE cluster SET level = 99", "UPDATE events SET kind = 'unheard_of' WHERE id = 1")


def newer_journal(patient: Patient) -> None:
    """Its entries read as before, and the state has them all: nobody knows what else changed."""
    head = bytearray(patient.segment.read_bytes()[:HEAD_BYTES])
    head[8] = 99
    reseal(patient.segment, head, HEAD_BYTES)


def newer_vote(patient: Patient) -> None:
    vote = patient.data_dir / "journal" / "vote"
    data = bytearray(vote.read_bytes())
    data[8] = 99
    reseal(vote, data, len(data))


def reseal(path: Path, data: bytearray, end: int) -> None:
    """Write what was changed, with a right checksum at its end."""
    data[-4:] = zlib.crc32(data[:-4]).to_bytes(4, "little")
    path.write_bytes(bytes(data) + path.read_bytes()[end:])


def vote_among_others(patient: Patient) -> None:
    patient.sql("INSERT INTO members SELECT 'n2', 'id2', raft, api, 1, 1 FROM members")
    (patient.data_dir / "journal" / "vote").unlink()


def damaged_identity(patient: Patient) -> None:
    (patient.data_dir / "identity.json").write_bytes(b"{")


BEYOND: dict[Callable[[Patient], None], str] = {
    unapplied_entry: "the journal is damaged where it may hold what the state does not",
    damaged_identity: "whose directory this is stood in identity.json alone",
    older_journal: "the database and the journal are not of one log, or one of them is older than the other",
    another_log: "the database and the journal are not of one log",
    newer_format: "the database is of another version",
    newer_level: "the database is of another version",
    newer_journal: "the journal is of another version",
    newer_vote: "the journal is of another version",
    vote_among_others: "this member's term and vote are lost, and with a guess it could vote twice",
}


@pytest.mark.parametrize("fault", BEYOND, ids=lambda fault: fault.__name__)
def test_what_nothing_is_left_to_repair_from_is_said_and_left(
    patient: Patient, fault: Callable[[Patient], None]
) -> None:
    fault(patient)
    before = (patient.data_dir / "state.db").read_bytes()
    for flags in ((), ("--apply",)):
        code, told = patient.doctor(*flags)
        assert code == 1
        assert f"cannot be repaired here: {BEYOND[fault]}" in told
        assert "ipamctl cluster remove" in told
        assert "ipamd restore" in told
        assert (patient.data_dir / "state.db").read_bytes() == before
        assert not [path for path in patient.data_dir.iterdir() if path.name.startswith("before-repair")]


def test_a_repair_that_is_cut_short_anywhere_leaves_the_copy_and_is_done_again(
    patient: Patient, tmp_path: Path
) -> None:
    torn(patient)
    overwritten_page(patient)
    program = [
        sys.executable,
        "-m",
        "tests.main.cut_short",
        str(patient.data_dir),
        str(tmp_path / "tries"),
        patient.digest,
    ]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) >= 3, "it was cut short at too few places"
