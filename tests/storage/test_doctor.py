"""The doctor finds what was planted, names it, and changes nothing."""

from __future__ import annotations

import hashlib
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest

from ipamd.core.commands import SetQuarantine
from ipamd.storage.database import FILE_NAME
from ipamd.storage.doctor import Finding, JournalFacts, examine
from tests.core.world import ORIGIN, addresses
from tests.storage.crash import child
from tests.storage.driver import Driver
from tests.storage.pods import add, delete, pool


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A data directory with a bit of everything, closed."""
    driver = Driver(tmp_path / "data")
    driver.run(
        pool("p", "192.0.2.0/28", "2001:db8::/64", hold_s=9, strategy="round-robin"),
        pool("q", "198.51.100.0/28", cooldown_s=60),
        add("t/a", pools="p q"),
        add("t/b", pools="p q"),
        delete("t/b"),
        SetQuarantine(ORIGIN, "default", addresses("192.0.2.9")[0]),
    )
    driver.close()
    return driver.data_dir


def plant(data_dir: Path, statement: str) -> None:
    """Damage a database behind ipamd's back."""
    connection = sqlite3.connect(data_dir / FILE_NAME)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("PRAGMA writable_schema = ON")
    with connection:
        assert connection.execute(statement).rowcount != 0
    connection.close()


def test_a_sound_directory_has_no_findings_and_is_left_as_it_is(sound: Path) -> None:
    before = hashlib.sha256((sound / FILE_NAME).read_bytes()).hexdigest()
    assert examine(sound) == []
    assert hashlib.sha256((sound / FILE_NAME).read_bytes()).hexdigest() == before


@pytest.mark.parametrize(
    ("fault", "where", "sentence"),
    [
        ("UPDATE addresses SET pool_id = 2 WHERE address = x'c0000201'", "laws", "192.0.2.1 is held by attachment"),
        ("DELETE FROM addresses WHERE address = x'c0000201'", "free space", "is free, which is not kept"),
        ("DELETE FROM addresses WHERE address = x'c6336401'", "laws", "has no address"),
        ("DELETE FROM attachments WHERE ifname = 'eth0'", "references", "refers to a row of attachments"),
        ("UPDATE attachments SET generation = 0", "laws", "has generation 0"),
        ("DELETE FROM free_spans WHERE range_id = 1", "free space", "pool p, 192.0.2.0/28: "),
        ("UPDATE free_spans SET first = x'c0000209' WHERE range_id = 1", "free space", "which is not so"),
        ("UPDATE meta SET last_id = 1", "laws", "the counter stands at 1"),
        ("DELETE FROM events WHERE id = 3", "laws", "there is no event between 2 and 4"),
        ("DELETE FROM meta", "laws", "the position in the log is missing"),
        ("UPDATE attachments SET bound = 1, hold_until_log_ms = NULL WHERE bound = 0", "", ""),
        ("UPDATE pools SET routes = '{'", "free space", "cannot be read"),
        ("UPDATE ranges SET first = x'00'", "file", "CHECK constraint failed in ranges"),
        (
            "INSERT INTO cooling SELECT space, address, pool_id, 't/x', 'eth0', 1, 1, 1 FROM addresses LIMIT 1",
            "laws",
            "is held and cooling at once",
        ),
    ],
)
def test_a_planted_fault_is_found(sound: Path, fault: str, where: str, sentence: str) -> None:
    plant(sound, fault)
    findings = examine(sound)
    if not where:
        assert findings == []
        return
    assert [one for one in findings if one.where == where and sentence in one.sentence], findings


def test_a_flipped_byte_in_an_index_is_found(sound: Path) -> None:
    connection = sqlite3.connect(sound / FILE_NAME)
    query = "SELECT rootpage FROM sqlite_master WHERE name = 'ix_addresses_attachment_id_position'"
    (page,) = connection.execute(query).fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with (sound / FILE_NAME).open("r+b") as file:
        file.seek(page * size - 1)
        last = file.read(1)
        file.seek(page * size - 1)
        file.write(bytes([last[0] ^ 0xFF]))
    assert "indexes" in {one.where for one in examine(sound)}


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (JournalFacts(1, 9, lambda _: 1), None),
        (JournalFacts(2, 2, lambda _: 1), None),
        (JournalFacts(1, 2, lambda _: None), None),
        (JournalFacts(3, 9, lambda _: 1), "the database has applied entry 2, the journal holds entries 3 to 9"),
        (JournalFacts(1, 1, lambda _: 1), "the database has applied entry 2, the journal holds entries 1 to 1"),
        (JournalFacts(1, 9, lambda _: 4), "the database has entry 2 of term 1, the journal has it of term 4"),
    ],
)
def test_the_journal_has_to_fit(sound: Path, facts: JournalFacts, sentence: str | None) -> None:
    assert examine(sound, facts) == ([] if sentence is None else [Finding("journal", sentence)])


def test_no_database_and_other_files_are_findings(tmp_path: Path, sound: Path) -> None:
    (only,) = examine(tmp_path / "nothing")
    assert only.sentence.endswith("state.db is missing")
    (sound / FILE_NAME).write_bytes(b"not a database, but long enough to look like one" * 30)
    (only,) = examine(sound)
    assert only.sentence.endswith("is not a SQLite database")


def test_an_older_format_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).touch()
    (only,) = examine(tmp_path)
    assert only.sentence == "the database has format 0; ipamd migrate brings it to 1"


def test_it_reads_what_a_killed_process_left_in_the_write_ahead_log(tmp_path: Path) -> None:
    process = child(tmp_path / "data", kill_after=40)
    assert process.wait(60) == -signal.SIGKILL
    assert (tmp_path / "data" / f"{FILE_NAME}-wal").stat().st_size > 0
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "data", copy)
    before = hashlib.sha256((copy / f"{FILE_NAME}-wal").read_bytes()).hexdigest()
    assert examine(copy) == []
    assert hashlib.sha256((copy / f"{FILE_NAME}-wal").read_bytes()).hexdigest() == before
