"""`ipamctl import`: which files it reads, what it sends of them, and how an answer or a refusal looks."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

POOL = {"kind": "IPPool", "metadata": {"name": "10.0.0.0-24"}, "spec": {"range": "10.0.0.0/24", "allocations": {}}}
RESERVATION = {"kind": "OverlappingRangeIPReservation", "metadata": {"name": "10.0.0.5"}, "spec": {"podref": "t/a"}}
CONF = {
    "name": "pods",
    "cniVersion": "1.0.0",
    "type": "bridge",
    "ipam": {"type": "host-local", "subnet": "10.0.0.0/24"},
}
DONE = {
    "dry_run": False,
    "pools": [{"pool": "10.0.0.0-24", "space": "default", "created": True, "made": 2, "kept": 1, "gone": 0}],
    "made": 2,
    "kept": 1,
    "gone": 0,
    "refused": 0,
    "warnings": ["10.0.0.1 of t/a is the gateway"],
}
ENTRY = {
    "address": "10.0.0.5",
    "pool": "10.0.0.0-24",
    "pod_ref": None,
    "ifname": "eth0",
    "container_id": "c1",
    "node": None,
    "cni_network": "pods",
    "place": "pods/10.0.0.5",
    "fate": "refused",
    "why": "is held by eth0 of t/a",
}
CONFLICT = {"place": "pods/10.0.0.5", "address": "10.0.0.5", "why": "is held by eth0 of t/a"}


@pytest.fixture
def run(ctl, peer):
    def call(*args, stdin=None):
        return ctl("--server", peer.address, "import", *map(str, args), stdin=stdin)

    return call


@pytest.fixture
def networks(tmp_path):
    """A data directory of host-local with one network."""
    directory = tmp_path / "networks"
    (directory / "pods").mkdir(parents=True)
    (directory / "pods" / "10.0.0.5").write_bytes(b"c1\r\neth0")
    (directory / "pods" / "lock").write_bytes(b"")
    return directory


def items(peer: Any) -> Any:
    assert (peer.last.method, peer.last.path) == ("POST", "/v1/import")
    return peer.last.body["items"]


def test_a_list_an_object_and_the_list_of_a_kind_are_sent_as_one_list(run, peer, tmp_path):
    peer.on("POST", "/v1/import", DONE)
    (tmp_path / "a.json").write_text(json.dumps({"kind": "List", "items": [POOL]}))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(RESERVATION))
    plain = {key: value for key, value in POOL.items() if key != "kind"}
    (tmp_path / "c.yml").write_text(yaml.safe_dump({"kind": "IPPoolList", "items": [plain]}))
    (tmp_path / "notes.txt").write_text("no document")
    done = run("whereabouts", tmp_path)
    assert done.exit_code == 0, done.output
    assert items(peer) == [POOL, RESERVATION, POOL]
    assert peer.last.query == {"format": "whereabouts"}
    assert peer.last.headers["content-length"] == str(len(json.dumps(peer.last.body)))
    assert peer.last.headers["idempotency-key"]
    assert "warning: 10.0.0.1 of t/a is the gateway" in done.stderr
    assert done.stdout.split() == [
        "POOL",
        "SPACE",
        "CREATED",
        "MADE",
        "KEPT",
        "GONE",
        "10.0.0.0-24",
        "default",
        "yes",
        "2",
        "1",
        "0",
    ]


def test_stdin_is_read(run, peer):
    peer.on("POST", "/v1/import", DONE)
    assert run("whereabouts", "-", stdin=json.dumps({"kind": "List", "items": [POOL]})).exit_code == 0
    assert items(peer) == [POOL]


def test_configurations_go_along_as_kubernetes_keeps_them(run, peer, tmp_path):
    peer.on("POST", "/v1/import", DONE)
    (tmp_path / "dump.json").write_text(json.dumps(POOL))
    own = {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": "n"},
        "spec": {},
    }
    (tmp_path / "nad.yaml").write_text(yaml.safe_dump(own))
    (tmp_path / "pods.conf").write_text(json.dumps(CONF))
    confs = ("--conf", tmp_path / "nad.yaml", "--conf", tmp_path / "pods.conf")
    assert run("whereabouts", tmp_path / "dump.json", *confs, "--dry-run").exit_code == 0
    _, first, second = items(peer)
    assert first == own
    assert (second["metadata"]["name"], json.loads(second["spec"]["config"])) == ("pods.conf", CONF)
    assert peer.last.query == {"format": "whereabouts", "dry_run": "true"}


def test_the_directories_of_host_local_are_sent_as_they_are(run, peer, networks, tmp_path):
    peer.on("POST", "/v1/import", DONE)
    (tmp_path / "pods.conf").write_text(json.dumps(CONF))
    done = run("host-local", networks, "--node", "n1", "--cluster", "east", "--conf", tmp_path / "pods.conf")
    assert done.exit_code == 0, done.output
    assert peer.last.body == {"networks": {"pods": {"10.0.0.5": "c1\r\neth0", "lock": ""}}, "confs": [CONF]}
    assert peer.last.query == {"format": "host-local", "node": "n1", "cluster": "east"}
    run("host-local", networks / "pods")
    assert peer.last.body["networks"] == {"pods": {"10.0.0.5": "c1\r\neth0", "lock": ""}}


def test_a_dry_run_shows_every_entry_and_what_is_refused(run, peer, networks):
    answer = {**DONE, "dry_run": True, "refused": 1, "entries": [ENTRY], "conflicts": [CONFLICT]}
    peer.on("POST", "/v1/import", answer)
    done = run("host-local", networks, "--dry-run")
    assert done.exit_code == 1
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "10.0.0.5 10.0.0.0-24 - eth0 c1 - refused is held by eth0 of t/a" in lines
    assert "pods/10.0.0.5 10.0.0.5 is held by eth0 of t/a" in lines


def test_a_refusal_lists_every_reason(run, peer, networks):
    fault = {"place": "pods/x", "why": "is not named after an address"}
    extra = {"conflicts": [CONFLICT, {**CONFLICT, "address": None}], "faults": [fault]}
    peer.refuses("POST", "/v1/import", 409, "import_conflict", "nothing was imported", **extra)
    done = run("host-local", networks)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "ipamctl: pods/x: is not named after an address",
        "ipamctl: pods/10.0.0.5: 10.0.0.5 is held by eth0 of t/a",
        "ipamctl: pods/10.0.0.5: is held by eth0 of t/a",
        "ipamctl: nothing was imported",
    ]


@pytest.mark.parametrize(
    "content", ['{"kind": "List", "items": [', "[]", "{}", '{"kind": "List"}', '{"kind": "List", "items": {}}', "7"]
)
def test_a_file_that_is_no_dump_is_never_sent(run, peer, tmp_path, content):
    (tmp_path / "dump.json").write_text(content)
    done = run("whereabouts", tmp_path / "dump.json")
    assert (done.exit_code, peer.asked) == (2, [])
    assert "dump.json" in done.stderr


def test_all_files_that_cannot_be_read_are_told_of(run, peer, tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{")
    done = run("whereabouts", tmp_path)
    assert (done.exit_code, peer.asked) == (2, [])
    assert all(name in done.stderr for name in ("a.json", "b.json"))


def test_a_directory_that_is_not_host_locals_is_never_sent(run, peer, networks, tmp_path):
    (networks / "stray").write_text("?")
    assert run("host-local", networks).exit_code == 2
    (networks / "stray").unlink()
    (networks / "pods" / "10.0.0.6").write_bytes(b"x" * 5000)
    (networks / "pods" / "10.0.0.7").write_bytes(b"\xff\xfe")
    done = run("host-local", networks)
    assert (done.exit_code, peer.asked) == (2, [])
    assert "10.0.0.6 cannot be read: it has more than 4096 bytes" in done.stderr
    assert "10.0.0.7 cannot be read" in done.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run("whereabouts", empty).exit_code == 2


def test_nodes_have_a_row_for_what_nobody_has_claimed(ctl, peer):
    node = {"name": "n1", "bound": 3, "boots": 1, "since": "2026-01-01T00:00:00.000Z"}
    peer.on(
        "GET",
        "/v1/nodes",
        {"items": [node], "next": None, "unclaimed": 4},
        {"items": [node], "next": None, "unclaimed": 0},
    )
    assert "unclaimed - 4 - - - - - -" in " ".join(ctl("--server", peer.address, "node", "list").stdout.split())
    assert "unclaimed" not in ctl("--server", peer.address, "node", "list").stdout
