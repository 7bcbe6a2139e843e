"""A server's data directory in hard times: what `doctor`, `migrate` and a start say of damage, and what they leave."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.main.test_serve import POOL, ask, events, ipamd
from tests.support.server import Server, ServerError


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path).start() as started:
        yield started


def test_migrate_needs_a_stopped_server_with_data(server: Server, tmp_path: Path) -> None:
    running = ipamd("migrate", "--data-dir", str(server.data_dir))
    assert running.returncode == 1
    assert "in use by another ipamd" in running.stderr
    server.stop()
    done = ipamd("migrate", "--data-dir", str(server.data_dir))
    assert (done.returncode, done.stderr) == (0, "")
    assert "already" in done.stdout
    (tmp_path / "empty").mkdir()
    nothing = ipamd("migrate", "--data-dir", str(tmp_path / "empty"))
    assert nothing.returncode == 1
    assert "no data directory of ipamd" in nothing.stderr
    assert list((tmp_path / "empty").iterdir()) == []


def test_doctor_needs_a_stopped_server(server: Server) -> None:
    assert ask(server, "POST", "/v1/pools", POOL)[0] == 201
    running = ipamd("doctor", "--data-dir", str(server.data_dir))
    assert (running.returncode, running.stdout) == (2, "")
    assert "in use by another ipamd" in running.stderr
    server.kill()
    found = ipamd("doctor", "--data-dir", str(server.data_dir))
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.count("\n") == 1
    assert "nothing found; state applied up to index" in found.stdout
    assert "of term 1" in found.stdout


def test_doctor_finds_planted_faults(server: Server) -> None:
    add = {"pool": "p", "pod_ref": "a/b", "container_id": "c", "node": "n1"}
    assert ask(server, "POST", "/v1/pools", POOL)[0] == 201
    assert ask(server, "POST", "/v1/reservations", add)[0] == 201
    assert server.stop() == 0
    with closing(sqlite3.connect(server.data_dir / "state.db")) as planted:
        planted.execute("DELETE FROM addresses")
        planted.execute("DELETE FROM free_spans")
        planted.execute("UPDATE meta SET applied_index = applied_index + 1000")
        planted.commit()
    found = ipamd("doctor", "--data-dir", str(server.data_dir))
    assert found.returncode == 1
    assert "laws: " in found.stdout
    assert "free space: pool p, 10.1.0.0/24" in found.stdout
    assert "journal: the database has applied entry" in found.stdout


def test_a_state_that_contradicts_itself_ends_the_process(server: Server) -> None:
    """A taken address is planted among the free ones: the ADD that would double it must not be answered."""
    add = {"pool": "p", "pod_ref": "a/b", "container_id": "c", "node": "n1"}
    assert ask(server, "POST", "/v1/pools", POOL)[0] == 201
    assert ask(server, "POST", "/v1/reservations", add)[0] == 201
    assert server.stop() == 0
    with closing(sqlite3.connect(server.data_dir / "state.db")) as planted:
        planted.execute("UPDATE free_spans SET first = x'0a010001'")
        planted.commit()
    server.start()
    with suppress(OSError):  # it may be gone before it could say so
        assert ask(server, "POST", "/v1/reservations", add | {"pod_ref": "a/c"})[0] == 503
    assert server.process is not None
    assert server.process.wait(5) == 70
    assert [event for event in events(server) if event["msg"].startswith("the log cannot go on")]


def test_doctor_finds_a_damaged_journal(server: Server) -> None:
    for number in range(3):
        assert ask(server, "POST", "/v1/pools", {"name": f"p{number}", "subnet": f"10.{number}.0.0/24"})[0] == 201
    assert server.stop() == 0
    journal = next((server.data_dir / "journal").glob("*.log"))
    data = bytearray(journal.read_bytes())
    at = data.index(b"p0")
    data[at] ^= 1
    journal.write_bytes(data)
    found = ipamd("doctor", "--data-dir", str(server.data_dir))
    assert found.returncode == 1
    assert str(journal) in found.stdout
    assert journal.read_bytes() == data
    with pytest.raises(ServerError, match="status 1"):
        server.start()


@pytest.mark.parametrize("offset", [0, 50])
def test_a_damaged_state_is_refused_with_the_way_out(server: Server, offset: int) -> None:
    assert server.stop() == 0
    with (server.data_dir / "state.db").open("r+b") as file:
        file.seek(offset)
        file.write(b"\xa5" * 1024)
    with pytest.raises(ServerError, match="status 1"):
        server.start()
    last = events(server)[-1]
    assert last["level"] == "error"
    assert str(server.data_dir / "state.db") in last["msg"]
    assert "Traceback" not in server.log


def test_a_lost_database_is_made_anew_from_the_journal(server: Server) -> None:
    assert ask(server, "POST", "/v1/pools", POOL)[0] == 201
    token = server.token
    server.kill()
    for file in server.data_dir.glob("state.db*"):
        file.unlink()
    (server.data_dir / "admin.token").unlink()
    server.start()
    assert ask(server, "GET", "/v1/pools/p", token=token)[0] == 200
    assert not (server.data_dir / "admin.token").exists(), "the cluster has its first token: another would not be valid"
    assert "made anew from the journal" in server.log
    assert server.log.count("founded a cluster") == 1


def test_doctor_says_that_a_journal_is_missing(server: Server) -> None:
    assert server.stop() == 0
    shutil.rmtree(server.data_dir / "journal")
    ended = ipamd("doctor", "--data-dir", str(server.data_dir))
    assert ended.returncode == 2
    assert (
        "journal is missing, and the state alone is not whole; if other members have the state: ipamctl cluster remove"
        in ended.stderr
    )


@pytest.mark.parametrize("path", ["", "none"])
def test_doctor_wants_a_data_directory(tmp_path: Path, path: str) -> None:
    ended = ipamd("doctor", "--data-dir", str(tmp_path / path))
    assert ended.returncode == 2
    assert "no data directory of ipamd" in ended.stderr
    assert list(tmp_path.iterdir()) == []
