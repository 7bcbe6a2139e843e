"""Snapshots as files: made while others write, refused when anything is wrong with them, taken in as one change."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipamd.core.addresses import Network
from ipamd.core.commands import Found, Origin
from ipamd.core.levels import LEVEL
from ipamd.core.model import Member, Settings
from ipamd.core.ports import SnapshotRefused, View
from ipamd.storage import migrate, snapshots
from ipamd.storage.database import FILE_NAME
from ipamd.storage.errors import DiskFull, NewerFormat
from ipamd.storage.snapshots import make_snapshot
from tests.storage.crash import command
from tests.storage.driver import Driver
from tests.storage.pods import pool

ORIGIN = Origin("test", "")
MEMBERS = (Member("n1", "id1", "h:1", "http://h"), Member("n2", "id2", "h:2", "http://h2", voter=False))


def found(cluster_id: str = "one") -> Found:
    return Found(ORIGIN, cluster_id, Settings(), MEMBERS)


def grown(driver: Driver, entries: int) -> None:
    driver.run(found())
    for number in range(entries):
        driver.log_ms += 100
        driver.run(*command(number))


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Driver]:
    made = Driver(tmp_path / "other")
    yield made
    made.close()


def taken(driver: Driver, path: Path) -> Path:
    make_snapshot(driver.data_dir / FILE_NAME, path)
    return path


def test_another_member_comes_to_the_same_state(driver: Driver, other: Driver, tmp_path: Path) -> None:
    grown(driver, 40)
    facts = make_snapshot(driver.data_dir / FILE_NAME, tmp_path / "snapshot")
    assert (facts.applied, facts.term) == driver.machine.applied
    assert facts.size_bytes == (tmp_path / "snapshot").stat().st_size
    assert other.machine.inspect(str(tmp_path / "snapshot")) == driver.machine.applied
    other.machine.install(str(tmp_path / "snapshot"))
    assert other.digest() == driver.digest()
    assert (other.machine.members, other.machine.cluster_id) == (MEMBERS, "one")
    assert other.machine.next_due_log_ms == driver.machine.next_due_log_ms
    for one in (driver, other):
        one.log_ms, one.ops = 99_000, 7_000
        one.run(*command(41))
    assert other.digest() == driver.digest()
    other.reopen()
    assert other.digest() == driver.digest()
    assert other.examine() == []


def test_who_reads_goes_on_with_what_it_saw(driver: Driver, other: Driver, tmp_path: Path) -> None:
    grown(driver, 10)
    path = taken(driver, tmp_path / "snapshot")
    with other.state.snapshot() as before:
        assert before.cluster_id() is None
        other.machine.install(str(path))
        assert before.cluster_id() is None
        assert list(before.members()) == []
    with other.state.snapshot() as after:
        assert after.applied_index == driver.machine.applied[0]
        assert tuple(after.members()) == MEMBERS


def test_it_shows_one_moment_while_others_write(driver: Driver, other: Driver, tmp_path: Path) -> None:
    grown(driver, 60)
    done, wrote, digests = threading.Event(), threading.Event(), {driver.machine.applied[0]: driver.digest()}

    def write() -> None:
        number = 60
        while not done.is_set():
            driver.log_ms += 100
            driver.run(*command(number))
            digests[driver.machine.applied[0]] = driver.digest()
            number += 1
            wrote.set()

    writer, facts = threading.Thread(target=write), []
    writer.start()
    for number in range(5):
        wrote.clear()
        assert wrote.wait(60)
        facts.append(make_snapshot(driver.data_dir / FILE_NAME, tmp_path / f"snapshot-{number}"))
    done.set()
    writer.join()
    for number, one in enumerate(facts):
        other.machine.install(str(tmp_path / f"snapshot-{number}"))
        assert other.machine.applied[0] == one.applied
        assert other.digest() == digests[one.applied]
    assert facts[-1].applied > facts[0].applied


def test_a_byte_that_changed_anywhere_is_found(driver: Driver, other: Driver, tmp_path: Path) -> None:
    grown(driver, 3)
    path = taken(driver, tmp_path / "snapshot")
    whole = path.read_bytes()
    for position in (*range(0, len(whole), len(whole) // 60), *range(len(whole) - 45, len(whole))):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        with pytest.raises(SnapshotRefused, match="is not whole, or was changed"):
            other.machine.inspect(str(path))
    for size in (0, 1, 39, 40, 41, 4096, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(SnapshotRefused, match="is not whole"):
            other.machine.inspect(str(path))
    with pytest.raises(SnapshotRefused, match="cannot be read: No such file"):
        other.machine.inspect(str(tmp_path / "nothing"))


def test_another_cluster_and_another_format_are_refused(driver: Driver, other: Driver, tmp_path: Path) -> None:
    grown(driver, 3)
    path = taken(driver, tmp_path / "snapshot")
    other.run(found("two"))
    with pytest.raises(SnapshotRefused, match="is of another cluster"):
        other.machine.inspect(str(path))
    other.connection.execute("PRAGMA user_version = 99")
    with pytest.raises(SnapshotRefused, match="has format 99, this program reads"):
        driver.machine.inspect(str(taken(other, tmp_path / "newer")))


def test_damage_that_a_hash_does_not_show_is_found(driver: Driver, other: Driver, tmp_path: Path) -> None:
    """A member whose own file is damaged makes a snapshot of it that is whole."""
    grown(driver, 30)
    driver.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copy = tmp_path / "damaged" / FILE_NAME
    copy.parent.mkdir()
    shutil.copy(driver.data_dir / FILE_NAME, copy)
    content = bytearray(copy.read_bytes())
    with sqlite3.connect(copy) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()
    content[(root - 1) * 4096 : (root - 1) * 4096 + 64] = bytes(64)
    copy.write_bytes(content)
    with pytest.raises(SnapshotRefused, match=r"is damaged|cannot be read"):
        other.machine.inspect(str(_made(copy, tmp_path / "snapshot")))


def _made(database: Path, path: Path) -> Path:
    make_snapshot(database, path)
    return path


def test_no_space_leaves_the_old_state_and_no_file(driver: Driver, other: Driver, tmp_path: Path) -> None:
    grown(driver, 60)
    path = taken(driver, tmp_path / "snapshot")
    before = other.digest()
    pages = other.connection.execute("PRAGMA page_count").fetchone()[0]
    other.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskFull):
        other.machine.install(str(path))
    assert other.digest() == before
    assert other.machine.applied == (1, 0)
    other.connection.execute("PRAGMA max_page_count = 1000000")
    other.machine.install(str(path))
    assert other.digest() == driver.digest()


CHILD = """
import sys
from pathlib import Path
from tests.storage.driver import Driver
from tests.storage.pods import pool
driver = Driver(Path(sys.argv[1]))
print("ready", flush=True)
driver.machine.install(sys.argv[2])
print("installed", flush=True)
while True:
    for path in sys.argv[3:]:
        driver.machine.install(path)
"""


@pytest.mark.parametrize(("begun", "delay_s"), [(b"ready\n", 0.003), (b"ready\n", 0.02), (b"installed\n", 0.02)])
def test_a_kill_leaves_one_state_or_the_other(driver: Driver, tmp_path: Path, begun: bytes, delay_s: float) -> None:
    grown(driver, 5)
    digests = {driver.digest()}
    paths = [taken(driver, tmp_path / "small")]
    for number in range(5, 80):
        driver.log_ms += 100
        driver.run(*command(number))
    digests.add(driver.digest())
    paths.append(taken(driver, tmp_path / "large"))
    arguments = [sys.executable, "-c", CHILD, str(tmp_path / "victim"), *map(str, paths)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as child:
        assert child.stdout is not None
        while child.stdout.readline() != begun:
            assert child.poll() is None
        threading.Event().wait(delay_s)
        child.kill()
    victim = Driver(tmp_path / "victim")
    if begun == b"installed\n":
        assert victim.machine.applied[0] > 1
    assert victim.machine.applied == (1, 0) or victim.digest() in digests
    assert victim.examine() == []
    victim.close()


def test_what_is_remembered_of_pools_does_not_outlive_their_state(
    driver: Driver, other: Driver, tmp_path: Path
) -> None:
    grown(driver, 20)
    other.run(found())
    other.run(pool("p", "198.51.100.0/24"))
    with other.state.snapshot() as before:
        assert str(_subnet(before)) == "198.51.100.0/24"
    other.machine.install(str(taken(driver, tmp_path / "snapshot")))
    with other.state.snapshot() as after:
        assert str(_subnet(after)) == "192.0.2.0/24"
    assert str(_subnet(other.machine.view)) == "192.0.2.0/24"


def _subnet(view: View) -> Network:
    found_pool = view.pool("p")
    assert found_pool is not None
    return found_pool.sets[0][0].subnet


def older_scripts(place: Path) -> Path:
    """The migrations, and one more to a format 2 that has another table."""
    (place / "versions").mkdir(parents=True)
    for source in ("env.py", "versions/0001_initial.py"):
        (place / source).write_text((migrate.scripts() / source).read_text())
    (place / "versions" / "0002_next.py").write_text(
        'from alembic import op\nrevision = "0002"\ndown_revision = "0001"\n'
        'def upgrade():\n    op.execute("CREATE TABLE new (x INTEGER) STRICT")\n    op.execute("PRAGMA user_version = 2")\n'
    )
    return place


def test_one_of_an_older_format_is_brought_up_on_its_way_in(
    driver: Driver, other: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(driver, 10)
    path = taken(driver, tmp_path / "snapshot")
    scripts = older_scripts(tmp_path / "scripts")
    monkeypatch.setattr(migrate, "scripts", lambda: scripts)
    monkeypatch.setattr(snapshots, "FORMAT", 2)
    assert other.machine.inspect(str(path)) == driver.machine.applied
    other.machine.install(str(path))
    assert other.rows("PRAGMA user_version") == [(2,)]
    assert other.rows("SELECT * FROM new") == []
    assert other.digest() == driver.digest()
    assert sorted(one.name for one in tmp_path.iterdir() if "snapshot" in one.name) == ["snapshot"]


def test_one_of_a_newer_format_is_refused(driver: Driver, other: Driver, tmp_path: Path) -> None:
    grown(driver, 3)
    driver.connection.execute("PRAGMA user_version = 2")
    path = taken(driver, tmp_path / "snapshot")
    with pytest.raises(SnapshotRefused, match="snapshot has format 2, this program reads formats up to 1"):
        other.machine.inspect(str(path))


def test_one_in_a_file_of_a_newer_form_is_refused(
    driver: Driver, other: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(driver, 3)
    monkeypatch.setattr(snapshots, "_MARK", b"IPAMSNA\x02")
    path = taken(driver, tmp_path / "snapshot")
    monkeypatch.undo()
    with pytest.raises(SnapshotRefused, match="snapshot is a file of format 2, this program reads format 1"):
        other.machine.inspect(str(path))


def test_a_state_that_needs_a_newer_program_is_refused_as_a_snapshot_and_at_a_start(
    driver: Driver, other: Driver, tmp_path: Path
) -> None:
    grown(driver, 3)
    driver.connection.execute("UPDATE cluster SET level = ?", (LEVEL + 1,))
    needs = f"has come to need level {LEVEL + 1} of ipamd, this program has level {LEVEL}"
    path = taken(driver, tmp_path / "snapshot")
    with pytest.raises(SnapshotRefused, match=needs):
        other.machine.inspect(str(path))
    with pytest.raises(NewerFormat, match=f"{needs}: start the newer"):
        driver.reopen()
