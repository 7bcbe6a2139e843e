"""The verbs of nodes that are about who lives: `list`, `sync`, `confirm`, and `release` of what is suspect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipamctl.node.alive import read_alive

ID = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4


def attachment(container: str | None = ID, pod: str = "d/a") -> dict[str, Any]:
    return {"cni_network": "k", "container_id": container, "ifname": "eth0", "pod_ref": pod, "netns": "/run/netns/x"}


def node(*attachments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "n1", "state": "alive", "cluster_id": "c", "attachments": list(attachments), **more}


CRICTL = {
    "items": [
        {"id": ID, "metadata": {"name": "a", "namespace": "d"}, "state": "SANDBOX_READY"},
        {"id": OTHER, "metadata": {"name": "b", "namespace": "d"}, "state": "SANDBOX_NOTREADY"},
    ]
}
KUBECTL = {
    "kind": "List",
    "items": [
        {"metadata": {"namespace": "d", "name": "a"}, "status": {"phase": "Running"}},
        {"metadata": {"namespace": "d", "name": "b"}, "status": {"phase": "Failed"}},
    ],
}
NERDCTL = f'{{"ID":"{ID}","Status":"Up 2 hours"}}\n{{"ID":"{OTHER}","Status":"Exited (0) 1 hour ago"}}\n'
PODMAN = [{"Id": ID, "State": "running"}, {"Id": OTHER, "State": "exited"}]


@pytest.mark.parametrize(
    "text",
    [json.dumps(CRICTL), json.dumps(KUBECTL), NERDCTL, json.dumps(PODMAN), f"{ID}\n", f"\n  {ID[:12]}  \n", "d/a\n"],
    ids=["crictl", "kubectl", "nerdctl", "podman", "ids", "short-ids", "pods"],
)
def test_lists_of_runtimes_are_read(text):
    alive = read_alive(text)
    assert alive.has(attachment())
    assert not alive.has(attachment(OTHER, "d/b"))
    assert not alive.has(attachment(None, "d/b"))


def test_nerdctl_names_containers_by_its_namespace_first():
    assert read_alive(NERDCTL).has(attachment(f"default-{ID}"))


def test_sync_reports_life_and_nothing_else(ask, peer, tmp_path):
    peer.headers["Ipamd-Index"] = "41"
    peer.on("GET", "/v1/nodes/n1", node(attachment(), attachment(OTHER, "d/b")))
    peer.on("POST", "/v1/nodes/n1/inventory", {"conflicts": []})
    path = tmp_path / "pods.json"
    path.write_text(json.dumps(CRICTL))
    done = ask("node", "sync", "n1", "--from", str(path))
    assert done.exit_code == 0
    assert done.stdout == "1 interfaces on node n1 are alive; 1 more are bound there, and stay as they are\n"
    line = {"cni_network": "k", "container_id": ID, "ifname": "eth0", "alive": True}
    assert peer.last.body == {"boot_id": None, "index": 41, "cluster_id": "c", "attachments": [line]}
    assert ask("node", "sync", "n1", "--from", "-", stdin="d/b\n").exit_code == 0
    assert [one["container_id"] for one in peer.last.body["attachments"]] == [OTHER]


@pytest.mark.parametrize("text", ["web\n", "[1]", "{", '{"items": [1]}'])
def test_what_is_no_list_is_refused(ask, peer, text):
    done = ask("node", "sync", "n1", "--from", "-", stdin=text)
    assert done.exit_code == 2
    assert "stdin cannot be read" in done.stderr
    assert peer.asked == []


def test_list_warns_of_mass_silence(ask, peer):
    item = {"name": "n1", "state": "lost", "bound": 3, "silent_s": 400, "spooled": 0, "conflicts": 0, "boots": 1}
    peer.on("GET", "/v1/nodes", {"items": [item], "next": None, "mass_silence": {"since": "2030"}})
    done = ask("node", "list")
    assert done.stdout.splitlines()[1].split()[:5] == ["n1", "lost", "3", "-", "400"]
    assert "ipamctl node confirm" in done.stderr


def test_confirm_ends_it(ask, peer):
    peer.on("POST", "/v1/nodes/confirm", None, status=204)
    assert ask("node", "confirm").stdout.startswith("confirmed")


def test_release_of_suspects_asks_for_them_alone(typed, peer):
    peer.on("GET", "/v1/nodes/n1", node())
    peer.on("GET", "/v1/reservations", {"items": [], "next": None})
    peer.on("POST", "/v1/nodes/n1/release", {"released": 0})
    done = typed("node", "release", "n1", "--suspect", answer="y")
    assert peer.last.query == {"only": "suspect"}
    assert peer.asked[1].query["state"] == "suspect"
    assert "may well be running" not in done.stderr


def test_release_of_a_node_that_reports_warns(typed, peer):
    peer.on("GET", "/v1/nodes/n1", node(reported="2030"))
    peer.on("GET", "/v1/reservations", {"items": [], "next": None})
    done = typed("node", "release", "n1", answer="n")
    assert "node n1 is not lost; it reported at 2030" in done.stderr
    assert done.returncode == 1
