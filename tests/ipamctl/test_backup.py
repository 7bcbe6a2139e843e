"""`ipamctl backup`, `pool apply` and `pool confirm` against a real server; and answers that are not what they should be."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("s")) as running:
        yield running


@pytest.fixture
def ask(ctl, server):
    """Runs ipamctl over the node socket."""
    return lambda *args, stdin=None: ctl("--server", f"unix:{server.socket}", *map(str, args), stdin=stdin)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_a_backup_is_a_whole_database_with_its_hash_beside_it(ask, tmp_path):
    file = tmp_path / "b.db"
    done = ask("-o", "json", "backup", file)
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert names(tmp_path) == {"b.db", "b.db.sha256"}
    assert subprocess.run(["sha256sum", "-c", "b.db.sha256"], cwd=tmp_path, check=False).returncode == 0
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT applied_index FROM meta").fetchone() == (shown["index"],)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (cluster,) = database.execute("SELECT cluster_id FROM cluster").fetchone()
        kept = [len(secret) for (secret,) in database.execute("SELECT digest FROM tokens")]
    assert len(cluster) == 32
    assert kept == [32], "the hash of the first administrator's token"
    assert ask("backup", file).exit_code == 0
    assert subprocess.run(["sha256sum", "-c", "b.db.sha256"], cwd=tmp_path, check=False).returncode == 0


def test_it_takes_no_secrets_along(ask, server, tmp_path):
    secret = json.loads(ask("-o", "json", "token", "create", "somebody", "--role", "reader").stdout)["secret"]
    ask("backup", tmp_path / "b.db")
    data = (tmp_path / "b.db").read_bytes()
    assert secret.encode() not in data
    assert server.token.encode() not in data


def test_where_nothing_can_be_written_nothing_is_left(ask, tmp_path):
    (tmp_path / "file").write_text("x")
    done = ask("backup", tmp_path / "file" / "b.db")
    assert done.exit_code == 1
    assert names(tmp_path) == {"file"}


def test_what_is_no_file_is_not_replaced(ask, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        done = ask("backup", tmp_path / name)
        assert (done.exit_code, "may replace" in done.stderr) == (1, True), done.output
    assert (names(tmp_path), (tmp_path / "link").is_fifo()) == ({"pipe", "link"}, True)


def test_what_does_not_arrive_as_it_was_sent_is_no_backup(ctl, peer, tmp_path):
    body = b"not what the header says"
    peer.on("GET", "/v1/backup", body)
    peer.headers |= {"Ipamd-Index": "7", "Ipamd-Sha256": hashlib.sha256(b"other").hexdigest()}
    done = ctl("--server", peer.address, "backup", str(tmp_path / "b.db"))
    assert done.exit_code == 1
    assert "SHA-256" in done.stderr
    assert list(tmp_path.iterdir()) == []


POOLS = """
name: web
space: applied
ranges: [[{subnet: 10.1.0.0/24, gateway: 10.1.0.1}]]
labels: {team: net}
---
name: db
space: applied
subnet: 10.2.0.0/24
cooldown_s: 30
"""


@pytest.fixture
def declared(ask, tmp_path) -> Iterator[Path]:
    directory = tmp_path / "pools"
    (directory / "more").mkdir(parents=True)
    (directory / "pools.yaml").write_text(POOLS)
    (directory / "more" / "dmz.json").write_text('{"name": "dmz", "space": "applied", "subnet": "10.3.0.0/29"}')
    (directory / "README").write_text("no pool")
    yield directory
    for name in ("web", "db", "dmz"):
        ask("pool", "delete", name, "--force")


def results(done) -> dict[str, str]:
    assert done.exit_code == 0, done.output
    return {one["pool"]: one["result"] for one in json.loads(done.stdout)["items"]}


def test_pools_become_what_files_declare_and_stay_so(ask, declared):
    would = {"dmz": "would be created", "web": "would be created", "db": "would be created"}
    assert results(ask("-o", "json", "pool", "apply", declared, "--dry-run")) == would
    assert ask("pool", "show", "web").exit_code == 4, "nothing was changed"
    made = dict.fromkeys(would, "created")
    assert results(ask("-o", "json", "pool", "apply", declared)) == made
    assert results(ask("-o", "json", "pool", "apply", declared)) == dict.fromkeys(would, "unchanged")
    shown = json.loads(ask("-o", "json", "pool", "show", "db").stdout)
    assert (shown["cooldown_s"], shown["space"]) == (30, "applied")


def test_what_differs_is_shown_and_changed(ask, declared):
    ask("pool", "apply", declared)
    ask("reservation", "add", "dmz", "t/a", "--container-id", "c", "--address", "10.3.0.5")
    file = declared / "more" / "dmz.json"
    file.write_text('{"name": "dmz", "space": "applied", "subnet": "10.3.0.0/29", "range_end": "10.3.0.4"}')
    done = ask("-o", "json", "pool", "apply", file, "--dry-run")
    assert results(done) == {"dmz": "would be changed"}
    assert '+    "range_end": "10.3.0.4"' in done.stderr
    assert "10.3.0.5 of t/a would be stranded" in done.stderr
    assert results(ask("-o", "json", "pool", "apply", file)) == {"dmz": "changed"}
    assert results(ask("-o", "json", "pool", "apply", file)) == {"dmz": "unchanged"}
    file.write_text('{"name": "dmz", "space": "applied", "subnet": "10.4.0.0/29"}')
    refused = ask("pool", "apply", file)
    assert refused.exit_code == 1
    assert "force" in refused.stderr
    assert results(ask("-o", "json", "pool", "apply", file, "--force")) == {"dmz": "changed"}


def test_what_a_list_prints_can_be_applied(ask, declared):
    ask("pool", "apply", declared)
    listed = ask("-o", "json", "pool", "list").stdout
    assert set(results(ask("-o", "json", "pool", "apply", "-", stdin=listed)).values()) == {"unchanged"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: a\nsubnet: 10.0.0.0/24\n---\nname: a\nsubnet: 10.1.0.0/24\n", "declared twice"),
        ("subnet: 10.0.0.0/24\n", "without a name"),
        ("- 1\n- 2\n", "does not hold a pool"),
        ("name: a\nname: b\n", "twice"),
        ("name: [\n", "cannot be read"),
    ],
)
def test_files_that_declare_no_pools_are_told_before_anything_is_done(ask, tmp_path, text, sentence):
    file = tmp_path / "p.yaml"
    file.write_text(text)
    done = ask("pool", "apply", file)
    assert done.exit_code == 2
    assert sentence in done.stderr


@pytest.mark.parametrize("flags", [("--dry-run",), ()])
@pytest.mark.parametrize(
    ("new", "sentence"),
    [
        ('{"name": "wrong", "subnet": "10.9.0.0/33"}', "prefix length"),
        ('{"name": "wrong", "subnet": "10.9.0.0/24", "gate_way": "10.9.0.1"}', "gate_way"),
        ('{"name": "wr/ong", "subnet": "10.9.0.0/24"}', "name"),
        ('{"name": "wrong"}', "ranges is missing"),
    ],
)
def test_a_new_pool_that_makes_no_sense_is_told_with_its_place_and_nothing_is_made(ask, declared, new, sentence, flags):
    file = declared / "zz.json"
    file.write_text(new)
    done = ask("pool", "apply", declared, *flags)
    assert done.exit_code == 1, done.output
    assert f"zz.json, pool {json.loads(new)['name']}: " in done.stderr
    assert sentence in done.stderr
    assert ask("pool", "show", "web").exit_code == 4, "the others were not made either"


def test_a_directory_without_files_is_a_mistake(ask, tmp_path):
    assert ask("pool", "apply", tmp_path).exit_code == 2


def test_a_pool_that_was_never_restored_is_confirmed_already(ask, declared):
    ask("pool", "apply", declared)
    done = ask("-o", "json", "pool", "confirm", "web")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["confirmed"] is False
    assert ask("pool", "confirm", "nonesuch").exit_code == 4
