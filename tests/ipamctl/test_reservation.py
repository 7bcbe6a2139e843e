"""The verbs of reservations, and `node release`, which frees many of them."""

from __future__ import annotations

import json

import pytest

ATTACHMENT = {
    "ifname": "eth0",
    "cni_network": "net",
    "container_id": "0123456789abcdef",
    "node": "n1",
    "netns": None,
    "state": "bound",
    "generation": 3,
    "since": "2030-01-01T00:00:00Z",
    "addresses": ["10.0.0.5/24"],
}
WEB_A = {
    "pool": "web",
    "space": "default",
    "pod_ref": "default/a",
    "pod_uid": None,
    "created": "2030-01-01T00:00:00Z",
    "pinned": True,
    "note": "",
    "attachments": [ATTACHMENT],
}


def test_add_sends_only_what_is_given(ask, peer):
    peer.on("POST", "/v1/reservations", WEB_A, status=201)
    done = ask("reservation", "add", "web", "default/a")
    assert done.exit_code == 0
    assert peer.last.body == {"pool": "web", "pod_ref": "default/a"}
    assert "10.0.0.5/24" in done.stdout


def test_add_sends_all_that_is_given(ask, peer):
    peer.on("POST", "/v1/reservations", WEB_A)
    ask(
        *("reservation", "add", "web", "default/a", "--ifname", "net1", "--container-id", "c1", "--node", "n1"),
        *("--address", "10.0.0.5", "--address", "fd00::5", "--pin", "--ttl", "60", "--note", "for the router"),
    )
    assert peer.last.body == {
        "pool": "web",
        "pod_ref": "default/a",
        "ifname": "net1",
        "container_id": "c1",
        "node": "n1",
        "addresses": ["10.0.0.5", "fd00::5"],
        "pin": True,
        "ttl_s": 60,
        "note": "for the router",
    }


def test_a_full_pool_is_one_line_that_names_it(ask, peer):
    detail = "pool web has no free address: 3 bound; ipamctl pool usage web"
    peer.refuses("POST", "/v1/reservations", 409, "pool_exhausted", detail, pool="web")
    done = ask("-o", "json", "reservation", "add", "web", "default/d")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", f"ipamctl: {detail}\n")


def test_list_sends_its_filters_and_shows_a_line_an_attachment(ask, peer):
    two = {**WEB_A, "attachments": [ATTACHMENT, {**ATTACHMENT, "ifname": "net1", "addresses": ["10.0.0.6/24"]}]}
    peer.on("GET", "/v1/reservations", {"items": [two], "next": None})
    done = ask(
        *("reservation", "list", "--pool", "web", "--pod", "default/a", "--node", "n1", "--container-id", "c"),
        *("--address", "10.0.0.5", "--state", "bound"),
    )
    assert peer.last.query == {
        "pool": "web",
        "pod_ref": "default/a",
        "node": "n1",
        "container_id": "c",
        "address": "10.0.0.5",
        "state": "bound",
        "limit": "1000",
    }
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert rows[0][:6] == ["web", "default/a", "eth0", "10.0.0.5/24", "bound,", "pinned"]
    assert rows[1][:4] == ["web", "default/a", "net1", "10.0.0.6/24"]


def test_show_has_the_attachments_in_full(ask, peer):
    peer.on("GET", "/v1/reservations/web/default%2Fa", WEB_A)
    assert "0123456789abcdef" in ask("reservation", "show", "web", "default/a").stdout
    assert json.loads(ask("-o", "json", "reservation", "show", "web", "default/a").stdout) == WEB_A


def test_release_names_the_binding_that_is_meant(ask, peer):
    peer.on("DELETE", "/v1/reservations/web/default%2Fa", {"released": True})
    done = ask("reservation", "release", "web", "default/a", "--generation", "3", "--ifname", "eth0")
    assert (done.exit_code, done.stdout) == (0, "web: default/a is released\n")
    assert peer.last.query == {"generation": "3", "ifname": "eth0"}
    ask("reservation", "release", "web", "default/a", "--container-id", "c1", "--force")
    assert peer.last.query == {"container_id": "c1", "force": "true"}


def test_a_stale_release_ends_with_status_1(ask, peer):
    stale = {"released": False, "reason": "stale"}
    peer.on("DELETE", "/v1/reservations/web/default%2Fa", stale)
    done = ask("reservation", "release", "web", "default/a", "--generation", "2")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "web: default/a is kept: stale" in done.stderr
    done = ask("reservation", "release", "web", "default/a", "--generation", "2", "-o", "json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, stale)


def test_node_release_lists_what_it_frees_and_asks(typed, peer):
    peer.on("GET", "/v1/nodes/n1", {"name": "n1"})
    peer.on("GET", "/v1/reservations", {"items": [WEB_A], "next": None})
    peer.on("POST", "/v1/nodes/n1/release", {"released": 1})
    done = typed("node", "release", "n1", answer="n")
    assert done.returncode == 1
    assert "10.0.0.5/24" in done.stderr
    assert [asked.method for asked in peer.asked] == ["GET", "GET"]
    done = typed("node", "release", "n1", answer="y")
    assert (done.returncode, peer.last.path) == (0, "/v1/nodes/n1/release")


@pytest.mark.parametrize("stdin", ["", "n\n", "y\n"])
def test_node_release_without_anybody_to_ask_frees_nothing(ask, peer, stdin):
    peer.on("GET", "/v1/nodes/n1", {"name": "n1"})
    peer.on("GET", "/v1/reservations", {"items": [WEB_A], "next": None})
    peer.on("POST", "/v1/nodes/n1/release", {"released": 1})
    done = ask("node", "release", "n1", stdin=stdin)
    assert done.exit_code == 2
    assert "10.0.0.5/24" in done.stderr
    assert "stdin is no terminal: say --yes" in done.stderr
    assert {asked.method for asked in peer.asked} == {"GET"}


def test_node_release_does_not_ask_when_told(ask, peer):
    peer.on("POST", "/v1/nodes/n1/release", {"released": 1})
    assert ask("node", "release", "n1", "--yes").exit_code == 0
    assert [asked.method for asked in peer.asked] == ["POST"]


def test_node_release_of_what_nobody_claimed_lists_that(ask, typed, peer):
    unclaimed = {**ATTACHMENT, "container_id": "c9", "node": None, "addresses": ["10.0.0.9/24"]}
    imported = {**WEB_A, "pod_ref": "default/old", "attachments": [unclaimed]}
    peer.on("GET", "/v1/reservations", {"items": [WEB_A, imported], "next": None})
    peer.on("POST", "/v1/nodes/release-unclaimed", {"node": None, "released": 1})
    done = typed("node", "release", "--unclaimed", answer="y")
    assert (done.returncode, peer.last.path) == (0, "/v1/nodes/release-unclaimed")
    assert "10.0.0.9/24" in done.stderr
    assert "10.0.0.5/24" not in done.stderr
    assert "in these 1 reservations?" in done.stderr
    assert ask("node", "release", "--unclaimed", stdin="y\n").exit_code == 2
    assert ask("node", "release", "--unclaimed", "--yes").exit_code == 0
    assert ask("node", "release").exit_code == 2
    assert ask("node", "release", "n1", "--unclaimed", "--yes").exit_code == 2


def test_node_release_of_a_node_never_seen(ask, peer):
    peer.refuses("GET", "/v1/nodes/n9", 404, "not_found", "there is no node n9")
    assert ask("node", "release", "n9").exit_code == 4
