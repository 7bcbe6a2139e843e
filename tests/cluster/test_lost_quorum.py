"""What is left of a cluster makes a new one: all that was acknowledged is there, and the old directory is only read."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from tests.support.cluster import ask_socket
from tests.support.restores import run_restore
from tests.support.server import Server


def ask(server: Server, method: str, path: str, body: object = None) -> Any:
    got = ask_socket(server.socket, method, path, body)
    assert got.status < 300, got.body
    return got.json


def reserve(server: Server, name: str) -> None:
    body = {"pool": "p", "pod_ref": f"t/{name}", "container_id": f"c-{name}", "node": "w1"}
    ask(server, "POST", "/v1/reservations", body)


def pods(server: Server, query: str = "") -> dict[str, str]:
    items = ask(server, "GET", f"/v1/reservations{query}")["items"]
    return {one["pod_ref"]: one["attachments"][0]["addresses"][0] for one in items}


def prints(directory: Path) -> dict[str, str]:
    """What each file of a directory holds; of no account are the lock, and what SQLite makes anew of its log."""
    files = [path for path in directory.rglob("*") if path.is_file() and path.name not in ("lock", "state.db-shm")]
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def made(directory: Path, name: str, *flags: str) -> Server:
    (directory / name).mkdir()
    return Server(directory / name, "--insecure", *flags, name=name)


def test_the_journals_end_counts_and_others_join_the_new_cluster(tmp_path: Path) -> None:
    server = made(tmp_path, "n1").start()
    old_id = ask(server, "GET", "/v1/cluster")["cluster_id"]
    ask(server, "POST", "/v1/pools", {"name": "p", "subnet": "10.4.0.0/28"})
    reserve(server, "a")
    server.kill()
    older = {path.name: path.read_bytes() for path in server.data_dir.glob("state.db*")}
    server.start()
    reserve(server, "b")
    server.kill()
    for path in server.data_dir.glob("state.db*"):  # as a power cut may leave it: the journal is ahead
        path.unlink()
    for name, data in older.items():
        (server.data_dir / name).write_bytes(data)

    with made(tmp_path, "n2") as new:
        new.kill()
        shutil.rmtree(new.data_dir)
        before = prints(server.data_dir)
        done = run_restore("--from-member", server.data_dir, "--data-dir", new.data_dir)
        assert done.exit_code == 0, done.output
        assert prints(server.data_dir) == before
        new.start()
        assert pods(new) == {"t/a": "10.4.0.1/28", "t/b": "10.4.0.2/28"}
        cluster = ask(new, "GET", "/v1/cluster")
        assert cluster["cluster_id"] != old_id
        assert (cluster["epoch"], cluster["unconfirmed"]) == (1, ["p"])
        assert [one["name"] for one in cluster["members"]] == ["n2"]
        assert ask(new, "GET", "/v1/pools/p/usage")["ipv4"]["withheld"] == 12
        with made(tmp_path, "n3", "--join", new.url) as third:
            assert pods(third) == pods(new)
            confirmed = ask(third, "POST", "/v1/pools/p/confirm")
            assert confirmed["confirmed"] is True
            reserve(new, "c")
            assert pods(third)["t/c"] == "10.4.0.3/28"


def test_a_member_that_runs_is_not_taken(tmp_path: Path) -> None:
    with made(tmp_path, "n1") as server:
        done = run_restore("--from-member", server.data_dir, "--data-dir", tmp_path / "new")
        assert done.exit_code == 1
        assert "in use" in done.output
        assert not (tmp_path / "new").exists()


def test_a_damaged_journal_is_not_taken(tmp_path: Path) -> None:
    server = made(tmp_path, "n1").start()
    ask(server, "POST", "/v1/pools", {"name": "p", "subnet": "10.4.0.0/28"})
    assert server.stop() == 0
    segment = next((server.data_dir / "journal").glob("*.log"), None) or next(
        path for path in (server.data_dir / "journal").iterdir() if path.stat().st_size > 100
    )
    data = bytearray(segment.read_bytes())
    data[60] ^= 1
    segment.write_bytes(bytes(data))
    done = run_restore("--from-member", server.data_dir, "--data-dir", tmp_path / "new")
    assert done.exit_code == 1, done.output
    assert not (tmp_path / "new").exists() or {path.name for path in (tmp_path / "new").iterdir()} <= {"lock"}
