"""The file: whose it is, who may read it, how it is opened."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from ipamd.storage.database import APPLICATION_ID, FILE_NAME, FORMAT, file_format
from ipamd.storage.errors import Broken, ForeignFile, NewerFormat
from ipamd.storage.opening import open_database
from tests.storage.driver import Driver
from tests.storage.pods import pool


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_directory_and_files_are_their_owners_alone(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "a" / "data")
    driver.run(pool("p", "192.0.2.0/24"))
    assert mode(driver.data_dir) == 0o700
    modes = {path.name: mode(path) for path in driver.data_dir.iterdir()}
    assert modes == {FILE_NAME: 0o600, f"{FILE_NAME}-wal": 0o600, f"{FILE_NAME}-shm": 0o600}
    driver.close()
    assert [path.name for path in driver.data_dir.iterdir()] == [FILE_NAME]


def test_modes_that_were_widened_are_narrowed_again(tmp_path: Path) -> None:
    Driver(tmp_path / "data").close()
    (tmp_path / "data").chmod(0o755)
    (tmp_path / "data" / FILE_NAME).chmod(0o644)
    Driver(tmp_path / "data").close()
    assert (mode(tmp_path / "data"), mode(tmp_path / "data" / FILE_NAME)) == (0o700, 0o600)


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    Driver(tmp_path / "data").close()
    header = (tmp_path / "data" / FILE_NAME).read_bytes()[:100]
    assert int.from_bytes(header[68:72], "big") == APPLICATION_ID
    assert int.from_bytes(header[60:64], "big") == FORMAT
    assert file_format(tmp_path / "data" / FILE_NAME) == FORMAT


@pytest.mark.parametrize(("pragma", "value"), [("journal_mode", "wal"), ("synchronous", 1), ("foreign_keys", 1)])
def test_the_writer_keeps_its_promises(driver: Driver, pragma: str, value: object) -> None:
    assert driver.rows(f"PRAGMA {pragma}") == [(value,)]


def test_what_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(b"shopping list\n" * 100)
    with pytest.raises(ForeignFile, match="is not a SQLite database"):
        open_database(tmp_path)
    assert path.read_bytes() == b"shopping list\n" * 100


@pytest.mark.parametrize("marks", [("application_id", 7), ("user_version", 1)])
def test_another_programs_database_is_refused_untouched(tmp_path: Path, marks: tuple[str, int]) -> None:
    path = tmp_path / FILE_NAME
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA {marks[0]} = {marks[1]}")
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ForeignFile, match="of another program"):
        open_database(tmp_path)
    assert path.read_bytes() == before


def test_a_newer_format_is_refused_with_both_formats_named(tmp_path: Path) -> None:
    Driver(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    with pytest.raises(NewerFormat, match=f"has format {FORMAT + 1}, this program reads formats up to {FORMAT}"):
        open_database(tmp_path)


def test_a_cut_off_file_is_refused_and_the_way_back_named(tmp_path: Path) -> None:
    Driver(tmp_path).close()
    whole = (tmp_path / FILE_NAME).read_bytes()
    (tmp_path / FILE_NAME).write_bytes(whole[:5000])
    with pytest.raises(Broken, match=r"is damaged \(.*: move state.db. aside, .*cluster remove"):
        open_database(tmp_path)
