"""Every verb against a real server: what ipamctl asks for is what the API takes, and what it shows is what it answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
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

    def run(*args, stdin=None):
        return ctl("--server", f"unix:{server.socket}", *args, stdin=stdin)

    return run


@pytest.fixture
def told(ask):
    """Runs ipamctl, which must succeed; what it printed as JSON."""

    def run(*args, stdin=None):
        done = ask("-o", "json", *args, stdin=stdin)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout) if done.stdout.strip() else None

    return run


@pytest.fixture
def pool(told, request: pytest.FixtureRequest) -> Iterator[str]:
    """A pool of three addresses in a space of the test's own, removed at the end."""
    name = request.node.name.removeprefix("test_").replace("_", "-")
    args = ("--subnet", "10.128.165.0/24", "--range-start", "10.128.165.32", "--range-end", "10.128.165.34")
    told("pool", "create", name, *args, "--space", name, "--cooldown", "0")
    yield name
    told("pool", "delete", name, "--force")


def test_pools_are_made_changed_and_deleted(ask, told, pool):
    assert pool in ask("pool", "list").stdout
    assert "10.128.165.32" in ask("pool", "show", pool).stdout
    changed = told("pool", "update", pool, "--range-end", "10.128.165.35", "--label", "team=net")
    assert changed["ranges"][0][0]["range_end"] == "10.128.165.35"
    assert changed["labels"] == {"team": "net"}
    assert told("pool", "usage", pool)["ipv4"]["free"] == 4
    assert told("pool", "update", pool, "--range-end", "10.128.165.32", "--dry-run")["stranded"] == []
    assert told("pool", "usage", pool)["ipv4"]["total"] == 4
    again = told("pool", "create", "--file", "-", stdin=json.dumps(told("pool", "show", pool)))
    assert again["name"] == pool
    assert ask("pool", "create", pool, "--subnet", "10.9.0.0/24").exit_code == 1
    assert ask("pool", "show", "nonesuch").exit_code == 4


def test_an_update_leaves_the_cooldown_to_the_settings(told):
    told("pool", "create", "follows", "--subnet", "10.77.0.0/24", "--space", "follows")
    told("pool", "update", "follows", "--gateway", "10.77.0.1")
    told("settings", "set", "cooldown_s=11")
    assert told("pool", "show", "follows")["cooldown_s"] == 11
    told("settings", "set", "cooldown_s=300")
    told("pool", "delete", "follows")


def test_a_full_pool(ask, told, pool):
    for number in range(3):
        given = told("reservation", "add", pool, f"d/a-{number}")
        assert given["attachments"][0]["addresses"] == [f"10.128.165.{32 + number}/24"]
    done = ask("reservation", "add", pool, "d/a-3")
    assert done.exit_code == 1
    assert done.stderr.count("\n") == 1
    assert pool in done.stderr
    assert "pool_exhausted" in ask("why", pool).stdout
    assert len(told("reservation", "list", "--pool", pool, "--limit", "2")["items"]) == 2


def test_reservations_are_released_by_the_binding_that_is_meant(ask, told, pool):
    made = told("reservation", "add", pool, "d/a", "--container-id", "c1", "--node", "box", "--ifname", "net1")
    generation = str(made["attachments"][0]["generation"])
    assert told("reservation", "show", pool, "d/a") == made
    assert told("reservation", "list", "--node", "box", "--state", "bound", "--pod", "d/a")["items"] == [made]
    assert ask("reservation", "release", pool, "d/a").exit_code == 1
    stale = ask("reservation", "release", pool, "d/a", "--container-id", "c0")
    assert (stale.exit_code, stale.stdout) == (1, "")
    assert "stale" in stale.stderr
    assert ask("reservation", "release", pool, "d/a", "--generation", generation).exit_code == 0
    assert ask("reservation", "show", pool, "d/a").exit_code == 4


def test_single_addresses(ask, told, pool):
    told("reservation", "add", pool, "d/a", "--address", "10.128.165.33", "--pin", "--note", "for the router")
    held = ask("who", "10.128.165.33", "--space", pool)
    assert held.exit_code == 0
    assert "10.128.165.33 is held" in held.stdout
    assert "d/a" in held.stdout
    assert told("address", "show", "10.128.165.33", "--space", pool)["state"] == "held"
    history = told("address", "history", "10.128.165.33", "--space", pool)
    assert [(item["pod_ref"], item["to"]) for item in history["items"]] == [("d/a", None)]
    args = ("address", "quarantine", "10.128.165.32", "--space", pool)
    assert ask(*args, "--for", "60", "--note", "a printer has it").exit_code == 0
    assert told("address", "show", "10.128.165.32", "--space", pool)["state"] == "quarantined"
    assert ask(*args, "--lift").exit_code == 0
    assert told("address", "show", "10.128.165.32", "--space", pool)["state"] == "free"


def test_why_tells_of_one_pool_and_of_all(ask, told, pool):
    one = ask("why", pool, "--pod", "d/new")
    assert one.exit_code == 0
    assert "10.128.165.32" in one.stdout
    assert pool in [item["pool"] for item in told("why", "--pod", "d/new", "--ifname", "net1")["items"]]


def test_nodes_are_listed_renamed_released_and_forgotten(ask, told, pool):
    told("reservation", "add", pool, "d/a", "--container-id", "c1", "--node", "old-box")
    assert "old-box" in ask("node", "list").stdout
    assert ask("node", "show", "old-box").exit_code == 0
    assert ask("node", "rename", "old-box", "new-box").exit_code == 0
    assert ask("node", "forget", "new-box").exit_code == 1
    refused = ask("node", "release", "new-box", stdin="y\n")
    assert (refused.exit_code, "d/a" in refused.stderr) == (2, True)
    assert ask("node", "release", "new-box", "--yes").exit_code == 0
    assert told("pool", "usage", pool)["ipv4"]["bound"] == 0
    assert ask("node", "forget", "new-box").exit_code == 0
    assert ask("node", "release", "new-box", stdin="y\n").exit_code == 4
    assert ask("node", "calls").exit_code == 0


def test_the_cluster_of_one_is_whole(ask, told, server):
    assert ask("cluster", "status").exit_code == 0
    status = told("cluster", "status")
    assert status["leader"] == status["self"] == server.name


def test_settings(ask, told):
    before = told("settings", "show")
    assert told("settings", "set", "cooldown_s=5", "inline_pools=false") == {
        **before,
        "cooldown_s": 5,
        "inline_pools": False,
    }
    told("settings", "set", f"cooldown_s={before['cooldown_s']}", "inline_pools=true")
    assert told("settings", "show") == before
    assert ask("settings", "set", "cooldown_s=-5").exit_code == 1


def test_events_are_read_in_pages(ask, told, pool):
    newest = told("events")["items"][-1]
    assert (newest["kind"], newest["pool"]) == ("pool_created", pool)
    page = told("events", "--limit", "1", "--after", str(newest["index"] - 1))
    assert page["items"] == [newest]
    assert "pool_created" in ask("events").stdout


def test_tokens_serve_over_tcp(ctl, told, server, tmp_path):
    made = told("token", "create", "ci", "--role", "reader")
    (tmp_path / "token").write_text(made["secret"])
    over_tcp = ("--server", server.url, "--token-file", str(tmp_path / "token"))
    assert ctl(*over_tcp, "pool", "list").exit_code == 0
    assert ctl(*over_tcp, "pool", "delete", "nonesuch").exit_code == 1
    assert ctl("--server", server.url, "pool", "list").exit_code == 1
    listed = [item["id"] for item in told("token", "list")["items"]]
    assert made["id"] in listed
    first = told("token", "list", "--limit", "1")
    rest = told("token", "list", "--cursor", first["next"])
    assert [item["id"] for item in first["items"] + rest["items"]] == listed
    told("token", "revoke", made["id"])
    assert ctl(*over_tcp, "pool", "list").exit_code == 1


def test_the_admin_token_of_the_data_directory_serves_over_tcp(ctl, server):
    done = ctl("--server", server.url, "--token-file", str(server.token_file), "token", "list")
    assert done.exit_code == 0, done.output


def test_a_configuration_is_explained(ask, told, pool, tmp_path):
    conf = tmp_path / "net.conf"
    ipam = {"type": "ipamd", "pool": pool, "rnage": "x"}
    conf.write_text(json.dumps({"cniVersion": "1.0.0", "name": "net", "type": "bridge", "ipam": ipam}))
    answer = told("cni", "test", str(conf))
    assert answer["dialect"] == "native"
    (one,) = answer["pools"]
    assert (one["pool"], one["origin"], one["addresses"]) == (pool, "declared", ["10.128.165.32/24"])
    assert one["ranges"][0]["verdict"] == "10.128.165.32-10.128.165.34 has 3 of 3 free"
    assert answer["result"]["ips"] == [{"address": "10.128.165.32/24"}]
    assert answer["ignored"] == ["rnage"]
    assert told("cni", "test", str(conf), "--args", "IP=10.128.165.34")["pools"][0]["addresses"] == ["10.128.165.34/24"]
    assert told("pool", "usage", pool)["ipv4"]["free"] == 3
    refused = ask("cni", "test", str(conf), "--args", "IP=10.0.0.1")
    assert (refused.exit_code, "10.0.0.1" in refused.stderr) == (1, True)
    conf.write_text('{"cniVersion": "1.0.0", "name": "net", "ipam": {}}')
    assert ask("cni", "test", str(conf)).exit_code == 1


def test_it_runs_as_a_program(server):
    program = str(Path(sys.executable).parent / "ipamctl")
    command = [program, "--server", f"unix:{server.socket}", "-o", "yaml", "cluster", "status"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"self: {server.name}\n" in done.stdout


@pytest.mark.parametrize(
    "command", [("-o", "json", "cluster", "status"), ("events", "--follow"), ("completion", "bash")]
)
def test_a_result_that_cannot_be_written_is_one_sentence(server, told, command):
    told("pool", "create", "full", "--subnet", "10.9.9.0/30", "--space", "full")  # for there to be an event
    program = str(Path(sys.executable).parent / "ipamctl")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [program, "--server", f"unix:{server.socket}", *command], stdout=full, stderr=subprocess.PIPE, text=True,
            check=False, timeout=60,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "ipamctl: the result cannot be written: no space left on device\n")


def test_a_reader_that_has_seen_enough_is_no_error(server):
    program = str(Path(sys.executable).parent / "ipamctl")
    with subprocess.Popen(
        [program, "--server", f"unix:{server.socket}", "-o", "json", "cluster", "status"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        output, errors = process.stdout, process.stderr
        assert output is not None
        assert errors is not None
        output.close()
        assert errors.read() == ""
        process.wait(60)
