"""`ipamd restore` makes a whole new cluster or nothing: what it cannot use it refuses before it writes anything."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ipamd import datadir
from ipamd.consensus.engine import COMMAND
from ipamd.consensus.facts import read_facts
from ipamd.consensus.files import OsFiles
from ipamd.core.entries import Item, Stamp, encode_entry
from ipamd.datadir import DataDirError
from ipamd.storage.database import FILE_NAME, FORMAT
from ipamd.storage.doctor import JournalFacts, examine, position
from tests.consensus.journals import open_journal
from tests.storage.driver import Driver
from tests.support.cluster import ask_socket, rounds
from tests.support.restores import MARK, make_backup, run_restore, sealed
from tests.support.server import READY_S, Server, free_port

NONE = "nothing may be written"


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return make_backup(tmp_path)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new"


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def is_whole(data_dir: Path) -> bool:
    """Whether a server finds a state and a journal there that fit."""
    datadir.refuse_unfinished(data_dir)
    journal = read_facts(data_dir / datadir.JOURNAL_DIRECTORY, OsFiles())
    assert examine(data_dir, JournalFacts(journal.first, journal.last, journal.term_at)) == []
    found = position(data_dir)
    assert found is not None
    assert (journal.first, journal.last) == (found[0], found[0])
    assert journal.ballot is not None
    assert (journal.ballot.term, journal.ballot.vote) == (found[1], None)
    return True


def test_it_makes_a_new_cluster_of_the_backups_state(backup: Path, target: Path) -> None:
    done = run_restore(backup, "--data-dir", target)
    assert done.exit_code == 0, done.output
    assert is_whole(target)
    assert "ipamctl pool confirm POOL" in done.output
    new = Driver(target)
    with new.state.snapshot() as state:
        cluster, restored = state.cluster(), state.restored()
        assert cluster is not None
        assert restored is not None
        assert cluster.id in done.output
        assert (len(cluster.id), cluster.epoch, restored.cluster_id) == (32, 1, "old")
        pool = state.pool("p")
        assert pool is not None
        assert [str(one.address) for one in state.assigned_of_pool(pool.id)] == ["192.0.2.1", "192.0.2.2"]
        counts = state.counts(pool)[4]
        assert (counts.bound, counts.withheld, counts.free) == (2, 252, 0)
        assert list(state.members()) == []
    assert new.rows("SELECT count(*) FROM ops") == [(0,)], "what was answered in another cluster is not repeated here"
    new.close()
    assert names(target) == {"journal", "lock", "state.db"}
    assert (target / FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert target.stat().st_mode & 0o777 == 0o700


def test_twice_it_makes_two_clusters(backup: Path, tmp_path: Path) -> None:
    ids = {run_restore(backup, "--data-dir", tmp_path / name).output.split()[5] for name in ("one", "two")}
    assert len(ids) == 2


def test_a_restored_state_is_restored_again(backup: Path, tmp_path: Path) -> None:
    run_restore(backup, "--data-dir", tmp_path / "one")
    again = run_restore("--from-member", tmp_path / "one", "--data-dir", tmp_path / "two")
    assert again.exit_code == 0, again.output
    assert "(epoch 2)" in again.output
    assert is_whole(tmp_path / "two")


@pytest.mark.parametrize(("left", "sentence"), [(b"x" * 8192, "is not a SQLite database"), (b"", "is empty")])
def test_a_member_whose_state_is_lost_is_refused_in_a_sentence(
    backup: Path, target: Path, tmp_path: Path, left: bytes, sentence: str
) -> None:
    run_restore(backup, "--data-dir", tmp_path / "one")
    (tmp_path / "one" / FILE_NAME).write_bytes(left)
    refused = run_restore("--from-member", tmp_path / "one", "--data-dir", target)
    assert (refused.exit_code, sentence in refused.output) == (1, True), refused.output
    assert names(target) <= {"lock"}


def test_so_is_one_whose_journal_a_newer_version_wrote(backup: Path, target: Path, tmp_path: Path) -> None:
    run_restore(backup, "--data-dir", tmp_path / "one")
    at = position(tmp_path / "one")
    assert at is not None
    journal = open_journal(OsFiles(), tmp_path / "one" / datadir.JOURNAL_DIRECTORY)
    entry = encode_entry(Stamp(1, 1), [Item(bytes(16), b"\x01\xc8[]")])
    journal.add(COMMAND + entry, at[0] + 1, at[1])
    journal.sync()
    journal.close()
    refused = run_restore("--from-member", tmp_path / "one", "--data-dir", target)
    assert (refused.exit_code, "start the newer version" in refused.output) == (1, True), refused.output
    assert names(target) <= {"lock"}


def truncated(data: bytes) -> bytes:
    return data[:-4096]


def cut_before_its_end(data: bytes) -> bytes:
    return data[:-1]


def altered(data: bytes) -> bytes:
    return data[:9000] + bytes((data[9000] ^ 1,)) + data[9001:]


def of_a_newer_file_format(data: bytes) -> bytes:
    return sealed(data[: -32 - len(MARK)], MARK[:-1] + bytes((MARK[-1] + 1,)))


def of_a_newer_state_format(data: bytes) -> bytes:
    return sealed(data[:60] + (FORMAT + 1).to_bytes(4, "big") + data[64 : -32 - len(MARK)])


def without_pages(data: bytes) -> bytes:
    """Sealed again, as somebody would who knows how: SQLite itself finds it."""
    return sealed(data[: len(data) // 2 // 4096 * 4096])


def foreign(_data: bytes) -> bytes:
    with closing(sqlite3.connect(":memory:")) as other:
        other.execute("CREATE TABLE t (x)")
        return sealed(other.serialize())


def text(_data: bytes) -> bytes:
    return b"something else, " * 100


def empty(_data: bytes) -> bytes:
    return b""


CHANGES = [
    (truncated, "not whole"),
    (cut_before_its_end, "not whole"),
    (altered, "was changed"),
    (of_a_newer_file_format, "format 2"),
    (of_a_newer_state_format, f"format {FORMAT + 1}"),
    (without_pages, "damaged|cannot be read|malformed"),
    (foreign, "another program"),
    (text, "not whole"),
    (empty, "not whole"),
]


@pytest.mark.parametrize(("change", "sentence"), CHANGES, ids=lambda one: getattr(one, "__name__", ""))
def test_what_is_no_whole_backup_of_this_format_is_refused_before_anything_is_written(
    backup: Path, target: Path, change: Callable[[bytes], bytes], sentence: str
) -> None:
    backup.write_bytes(change(backup.read_bytes()))
    done = run_restore(backup, "--data-dir", target)
    assert done.exit_code == 1
    assert any(part in done.output for part in sentence.split("|")), done.output
    assert done.output.count("\n") == 1, "one sentence"
    assert not target.exists(), NONE


def test_one_that_is_not_what_the_hash_beside_it_is_of_is_refused(backup: Path, target: Path) -> None:
    beside = backup.with_name("backup.db.sha256")
    beside.write_text(f"{'0' * 64}  backup.db\n")
    done = run_restore(backup, "--data-dir", target)
    assert (done.exit_code, target.exists()) == (1, False)
    assert "backup.db.sha256" in done.output


def test_one_whose_tables_contradict_each_other_is_refused(tmp_path: Path, target: Path) -> None:
    def unsettle(driver: Driver) -> None:
        driver.connection.execute("DELETE FROM addresses WHERE address = x'C0000201'")

    done = run_restore(make_backup(tmp_path, unsettle), "--data-dir", target)
    assert (done.exit_code, target.exists()) == (1, False)
    assert "not sound" in done.output


def test_one_of_no_cluster_is_refused(tmp_path: Path, target: Path) -> None:
    backup = make_backup(tmp_path, lambda driver: driver.connection.execute("DELETE FROM cluster"))
    done = run_restore(backup, "--data-dir", target)
    assert (done.exit_code, target.exists()) == (1, False)


def test_a_directory_that_is_in_use_is_refused(backup: Path, target: Path) -> None:
    target.mkdir()
    (target / "something").write_text("kept")
    done = run_restore(backup, "--data-dir", target)
    assert done.exit_code == 1
    assert "not empty" in done.output
    assert names(target) == {"something"}
    (target / "something").unlink()
    assert run_restore(backup, "--data-dir", target).exit_code == 0
    again = run_restore(backup, "--data-dir", target)
    assert again.exit_code == 1, "a restored one is in use too"


@pytest.mark.needs_root
def test_what_root_restores_belongs_to_whose_the_directory_is(backup: Path, target: Path) -> None:
    target.mkdir()
    os.chown(target, 4711, 4712)
    assert run_restore(backup, "--data-dir", target).exit_code == 0
    assert {(path.stat().st_uid, path.stat().st_gid) for path in target.rglob("*")} == {(4711, 4712)}


def test_a_pipe_is_no_backup(target: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = run_restore(tmp_path / "pipe", "--data-dir", target)
    assert (done.exit_code, "is no file" in done.output, target.exists()) == (1, True, False), done.output


def test_it_wants_one_source(backup: Path, target: Path, tmp_path: Path) -> None:
    assert run_restore("--data-dir", target).exit_code == 2
    assert run_restore(backup, "--from-member", tmp_path, "--data-dir", target).exit_code == 2
    missing = run_restore(tmp_path / "nowhere", "--data-dir", target)
    assert (missing.exit_code, target.exists()) == (1, False)
    none = run_restore("--from-member", tmp_path / "nowhere", "--data-dir", target)
    assert (none.exit_code, target.exists()) == (1, False)


def test_killed_at_any_step_it_leaves_nothing_that_starts_or_a_whole_one(backup: Path, tmp_path: Path) -> None:
    steps = _steps(backup, tmp_path / "counted")
    assert steps > 30
    chosen = sorted({round(at) for at in _spread(steps, rounds(60, least=12))} | {1, steps - 2, steps - 1, steps})
    outcomes = set()
    for step in chosen:
        target = tmp_path / f"killed-{step}"
        status = _killed_at(step, backup, target)
        outcomes.add(_outcome(target))
        assert status == 9 or _outcome(target) == "whole"
    assert outcomes == {"nothing", "unusable", "whole"}, "the steps reach from the beginning to the end"


def _spread(steps: int, count: int) -> list[float]:
    return [1 + at * (steps - 1) / max(1, count - 1) for at in range(count)]


def _outcome(target: Path) -> str:
    if not target.exists() or names(target) <= {"lock"}:
        return "nothing"
    try:
        datadir.refuse_unfinished(target)
    except DataDirError:
        return "unusable"
    assert is_whole(target)
    return "whole"


def _steps(backup: Path, target: Path) -> int:
    """How many steps a restore has that are seen from outside."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        seen = [0]
        sys.addaudithook(lambda event, _: seen.__setitem__(0, seen[0] + (event in _STEPS)))
        run_restore(backup, "--data-dir", target)
        os.write(writing, str(seen[0]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        steps = int(told.read())
    os.waitpid(child, 0)
    return steps


_STEPS = frozenset(
    {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir", "os.scandir", "sqlite3.connect"}
)


def _killed_at(step: int, backup: Path, target: Path) -> int:
    """Restore in a process that ends, without any clean-up, right before a step; its exit status."""
    child = os.fork()
    if child == 0:
        left = [step]

        def look(event: str, _arguments: object) -> None:
            if event in _STEPS:
                left[0] -= 1
                if left[0] == 0:
                    os._exit(9)

        sys.addaudithook(look)
        os._exit(run_restore(backup, "--data-dir", target).exit_code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("failing", ["renew", "begin_journal", "sync", "copy_backup"])
def test_what_fails_leaves_the_directory_as_it_was(
    backup: Path, target: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"ipamd.programs.restore.{failing}", fail)
    done = run_restore(backup, "--data-dir", target)
    assert done.exit_code == 1
    assert _outcome(target) == "nothing"
    monkeypatch.undo()
    assert run_restore(backup, "--data-dir", target).exit_code == 0


def test_a_server_does_not_start_on_what_was_cut_short(tmp_path: Path) -> None:
    (tmp_path / datadir.RESTORING_DIRECTORY).mkdir()
    with pytest.raises(DataDirError, match="cut short: empty"):
        datadir.refuse_unfinished(tmp_path)


def test_one_that_would_wait_for_whom_it_joined_once_says_what_to_do(backup: Path, tmp_path: Path) -> None:
    server = Server(tmp_path, "--insecure", "--join", f"http://127.0.0.1:{free_port()}")
    assert run_restore(backup, "--data-dir", server.data_dir).exit_code == 0
    server.spawn()
    try:
        deadline_s = time.monotonic() + READY_S
        while "start without --join" not in server.log:
            assert time.monotonic() < deadline_s, server.log
            time.sleep(0.1)
        assert not server.is_ready()
    finally:
        server.kill()
    server.flags = ()
    with server.start():
        assert server.is_ready()


def test_what_compares_states_says_too_that_it_was_restored(backup: Path, tmp_path: Path) -> None:
    server = Server(tmp_path)
    assert run_restore(backup, "--data-dir", server.data_dir).exit_code == 0
    with server.start():
        for method, path in (("GET", "/v1/cluster"), ("POST", "/v1/cluster/verify")):
            got = ask_socket(server.socket, method, path)
            assert (got.status, got.json["epoch"], got.json["unconfirmed"]) == (200, 1, ["p"])
