"""The other verbs, and what all verbs have in common."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import pytest

from ipamctl.main import cli

ADDRESS = {
    "address": "10.0.0.5",
    "space": "default",
    "state": "bound",
    "pools": ["web"],
    "pod_ref": "default/a",
    "ifname": "eth0",
    "node": "n1",
    "since": "2030-01-01T00:00:00Z",
    "reason": "eth0 of default/a has it",
}
MEMBER = {
    "name": "n1",
    "member_id": "ab",
    "raft": "127.0.0.1:7481",
    "api": "http://127.0.0.1:7480",
    "voter": True,
    "reachable": True,
    "index": 9,
    "lag": 0,
    "certificate_days": None,
    "digest_index": None,
    "digest": None,
}
CLUSTER = {"cluster_id": "c", "self": "n1", "leader": "n1", "term": 2, "index": 9, "members": [MEMBER]}


def verbs(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from verbs(child, (*path, name))
    else:
        yield path, command


VERBS = dict(verbs())


def test_every_verb_of_the_reference_is_there():
    assert {" ".join(path) for path in VERBS} == {
        *(f"pool {verb}" for verb in ("create", "list", "show", "update", "delete", "usage", "apply", "confirm")),
        *(f"reservation {verb}" for verb in ("list", "show", "add", "release")),
        *(f"address {verb}" for verb in ("show", "history", "quarantine")),
        *(f"node {verb}" for verb in ("list", "show", "calls", "sync", "release", "confirm", "rename", "forget")),
        *(f"token {verb}" for verb in ("create", "list", "revoke")),
        *("who", "why", "events", "note", "backup", "completion", "settings show", "settings set"),
        *("cni install", "cni test", "import whereabouts", "import host-local"),
        *(f"cluster {verb}" for verb in ("status", "add", "remove", "transfer")),
        *(f"tls {verb}" for verb in ("init", "issue", "renew")),
    }


@pytest.mark.parametrize("path", list(VERBS), ids=" ".join)
def test_every_verb_has_help_with_a_summary_and_a_word_on_each_option(ctl, path):
    done = ctl(*path, "--help")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"Usage: ipamctl {' '.join(path)}")
    summary = (VERBS[path].help or "").splitlines()[0]
    assert summary.endswith(".")
    assert [p.name for p in VERBS[path].params if isinstance(p, click.Option) and not p.help] == []


@pytest.mark.parametrize("args", [(), ("pool",), ("pool", "nonsense"), ("pool", "list", "--nonsense"), ("who",)])
def test_what_cannot_be_understood_ends_with_status_2(ctl, args):
    done = ctl(*args)
    assert done.exit_code == 2
    assert "Usage: ipamctl" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(ctl, shell):
    done = ctl("completion", shell)
    assert done.exit_code == 0
    assert f"_IPAMCTL_COMPLETE={shell}_complete" in done.stdout


def test_completion_finds_verbs(ctl):
    done = ctl(env={"_IPAMCTL_COMPLETE": "bash_complete", "COMP_WORDS": "ipamctl pool cr", "COMP_CWORD": "2"})
    assert "create" in done.stdout


def test_who_says_it_in_a_line(ask, peer):
    peer.on("GET", "/v1/addresses/10.0.0.5", ADDRESS)
    done = ask("who", "10.0.0.5")
    assert done.stdout == "10.0.0.5 is bound since 2030-01-01T00:00:00Z: eth0 of default/a has it\n"
    assert json.loads(ask("-o", "json", "who", "10.0.0.5", "--space", "blue").stdout) == ADDRESS
    assert peer.last.query == {"space": "blue"}


def test_address_show_has_each_field(ask, peer):
    peer.on("GET", "/v1/addresses/10.0.0.5", ADDRESS)
    lines = ask("address", "show", "10.0.0.5").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(ADDRESS)


def test_address_history_is_shown(ask, peer):
    item = {"pool": "web", "pod_ref": "d/a", "ifname": "eth0", "node": None, "from": "2030", "to": None}
    peer.on("GET", "/v1/addresses/10.0.0.5/history", {"items": [item], "next": None})
    lines = ask("address", "history", "10.0.0.5").stdout.splitlines()
    assert lines[1].split() == ["web", "d/a", "eth0", "-", "2030", "-"]


def test_quarantine_is_set_and_lifted(ask, peer):
    peer.on("POST", "/v1/addresses/10.0.0.5/quarantine", {"address": "10.0.0.5", "note": "router"})
    peer.on("DELETE", "/v1/addresses/10.0.0.5/quarantine", None, status=204)
    ask("address", "quarantine", "10.0.0.5", "--for", "60", "--note", "router", "--space", "blue")
    assert (peer.last.body, peer.last.query) == ({"for_s": 60, "note": "router"}, {"space": "blue"})
    done = ask("address", "quarantine", "10.0.0.5", "--lift")
    assert (peer.last.method, done.stdout) == ("DELETE", "10.0.0.5 is back in use\n")
    assert ask("address", "quarantine", "10.0.0.5", "--lift", "--for", "1").exit_code == 2


def test_why_asks_one_pool_or_all(ask, peer):
    one = {"position": 0, "order": 0, "subnet": "10.0.0.0/24", "free": 9, "bound": 5, "verdict": "9 of 14 free"}
    account = {"pool": "web", "code": None, "detail": "it would get 10.0.0.6", "ranges": [one]}
    peer.on("GET", "/v1/pools", {"items": [{"name": "web"}, {"name": "db"}], "next": None})
    peer.on("GET", "/v1/pools/web/why", account)
    peer.on("GET", "/v1/pools/db/why", {**account, "pool": "db"})
    text = ask("why", "web", "--pod", "default/a", "--ifname", "net1").stdout
    assert peer.last.query == {"pod_ref": "default/a", "ifname": "net1"}
    assert "it would get 10.0.0.6" in text
    assert "SUBNET" in text
    assert "9 of 14 free" in text
    assert "BOUND" not in text
    ask("why", "web", "--address", "10.0.0.6", "--address", "fd00::6")
    assert peer.last.query == {"addresses": "10.0.0.6,fd00::6"}
    done = ask("why", "-o", "json")
    assert [item["pool"] for item in json.loads(done.stdout)["items"]] == ["web", "db"]


def test_events_go_on_after_an_index(ask, peer):
    event = {"index": 8, "at": "2030", "kind": "bound", "by": "socket", "request_id": "r", "pod_ref": "d/a"}
    peer.on("GET", "/v1/events", {"items": [event], "next": "c8"}, {"items": [], "next": None})
    lines = ask("events", "--after", "7").stdout.splitlines()
    assert lines[1].split() == ["8", "2030", "bound", "-", "d/a", "-", "-", "socket", "r", "-"]
    assert [asked.query for asked in peer.asked] == [
        {"after": "7", "limit": "1000"},
        {"cursor": "c8", "limit": "1000"},
    ]


def test_who_had_an_address(ask, peer):
    then = {"pool": "web", "pod_ref": "d/a", "ifname": "eth0", "node": "n1", "from_index": 3, "to_index": 9}
    then |= {"from": "2026-11-24T07:00:00.000Z", "to": "2026-11-24T10:00:00.000Z"}
    path = "/v1/addresses/10.0.0.5/history"
    peer.on("GET", path, *({"items": [one], "next": None} for one in (then, then | {"to": None, "from_index": 0})))
    first, second = (ask("who", "10.0.0.5", "--at", "2026-11-24T09:00:00Z", "--space", "blue").stdout for _ in "ab")
    assert peer.last.query == {"at": "2026-11-24T09:00:00.000Z", "space": "blue"}
    assert "d/a had 10.0.0.5 at " in first
    assert "(2026-11-24T09:00:00.000Z): eth0 on node n1, pool web, from 2026-11-24 " in first
    assert "or before until now" in second
    peer.on("GET", path, {"items": [], "next": None})
    assert ask("who", "10.0.0.5", "--at", "-7d").stdout.startswith("nobody had 10.0.0.5 at ")
    assert json.loads(ask("-o", "json", "who", "10.0.0.5", "--at", "-7d").stdout)["items"] == []
    peer.refuses("GET", path, 410, "gone", "events before 2026-11-01 are kept no longer")
    done = ask("who", "10.0.0.5", "--at", "-400d")
    assert (done.exit_code, "kept no longer" in done.stderr) == (1, True)


def test_nodes(ask, peer):
    peer.on("GET", "/v1/nodes", {"items": [{"name": "n1", "bound": 3, "boots": 1, "since": "2030"}], "next": None})
    peer.on("GET", "/v1/nodes/n1", {"name": "n1", "bound": 1, "attachments": [{"pod_ref": "d/a"}]})
    peer.on("POST", "/v1/nodes/n1/rename", {"name": "n2"})
    peer.on("DELETE", "/v1/nodes/n2", None, status=204)
    assert ask("node", "list").stdout.splitlines()[1].split() == ["n1", "-", "3", "-", "-", "-", "-", "1", "2030"]
    assert ask("node", "show", "n1").stdout.split() == ["name", "n1", "bound", "1", "POD_REF", "d/a"]
    assert ask("node", "rename", "n1", "n2").stdout == "node n1 is now n2\n"
    assert peer.last.body == {"to": "n2"}
    assert ask("node", "forget", "n2").stdout == "node n2 is forgotten\n"


def test_calls(ask, peer):
    call = {"at": "2030", "verb": "add", "pod_ref": "d/a", "pools": ["web"], "code": 0, "ms": 1.5, "request_id": "r"}
    delete = {**call, "verb": "del", "pod_ref": None, "pools": [], "container_id": "0123456789abcdef", "spooled": True}
    peer.on("GET", "/v1/calls", {"items": [call, delete], "next": None, "spooled": 1})
    add, rest, waiting = (line.split() for line in ask("node", "calls").stdout.splitlines()[1:])
    assert add == ["2030", "add", "d/a", "web", "-", "0", "-", "1.5", "r", "-"]
    assert rest == ["2030", "del", "-", "-", "0123456789abc", "0", "yes", "1.5", "r", "-"]
    assert " ".join(waiting) == "DELs that wait for the cluster: 1"


def test_a_whole_cluster(ask, peer):
    peer.on("GET", "/v1/cluster", CLUSTER)
    done = ask("cluster", "status")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].split()[:5] == ["n1", "yes", "yes", "9", "0"]


DIFFERENT = [{**MEMBER, "digest_index": 7, "digest": "aa"}, {**MEMBER, "name": "n2", "digest_index": 7, "digest": "bb"}]


@pytest.mark.parametrize(
    "damage",
    [{"leader": None}, {"members": [MEMBER, {**MEMBER, "reachable": False}]}, {"members": DIFFERENT}],
)
def test_a_degraded_cluster_ends_with_status_5(ask, peer, damage):
    peer.on("GET", "/v1/cluster", {**CLUSTER, **damage})
    done = ask("cluster", "status", "-o", "json")
    assert (done.exit_code, json.loads(done.stdout)) == (5, {**CLUSTER, **damage})


def test_states_that_differ_are_said(ask, peer):
    peer.on("GET", "/v1/cluster", {**CLUSTER, "members": DIFFERENT})
    assert "the states at log index 7 differ: n1 against n2" in ask("cluster", "status").stderr
    later = [DIFFERENT[0], {**DIFFERENT[1], "digest_index": 8}]
    peer.on("GET", "/v1/cluster", {**CLUSTER, "members": later})
    assert ask("cluster", "status").exit_code == 0


def test_states_are_compared_on_demand(ask, peer):
    alike = [DIFFERENT[0], {**DIFFERENT[1], "digest": "aa"}]
    for members, code, said in (
        (alike, 0, ""),
        (DIFFERENT, 5, "the states at log index 7 differ: n1 against n2"),
        ([DIFFERENT[0], {**DIFFERENT[1], "digest_index": None, "digest": None}], 5, "the state of n2 was not compared"),
        ([MEMBER], 0, ""),
    ):
        peer.on("POST", "/v1/cluster/verify", {**CLUSTER, "members": members})
        done = ask("cluster", "status", "--verify")
        assert (done.exit_code, said in done.stderr) == (code, True)
        assert bool(done.stderr) is bool(said)


def test_a_certificate_that_ends_soon_is_said(ask, peer):
    for days, said in ((29, True), (30, False)):
        peer.on("GET", "/v1/cluster", {**CLUSTER, "members": [{**MEMBER, "certificate_days": days}]})
        done = ask("cluster", "status")
        assert ("the certificate of n1 ends in 29 days" in done.stderr) is said
        assert done.exit_code == 0


def test_members_are_changed(ask, peer):
    peer.on("POST", "/v1/cluster/members", CLUSTER, status=201)
    peer.on("DELETE", "/v1/cluster/members/n2", CLUSTER)
    peer.on("POST", "/v1/cluster/leader", CLUSTER)
    assert ask("cluster", "add", "n2", "--raft", "h:1", "--api", "https://h:2").exit_code == 0
    assert peer.last.body == {"name": "n2", "raft": "h:1", "api": "https://h:2"}
    assert ask("cluster", "remove", "n2").stdout.splitlines()[-1].split()[0] == "n1"
    for args, body in (((), {"name": None}), (("n2",), {"name": "n2"})):
        assert ask("cluster", "transfer", *args).exit_code == 0
        assert peer.last.body == body
    assert ask("cluster", "add", "n2").exit_code == 2


def test_tokens(ask, peer):
    made = {"id": "t1", "name": "ci", "role": "node", "node": "n1", "secret": "ipamd_x"}
    peer.on("POST", "/v1/tokens", made, status=201)
    peer.on("DELETE", "/v1/tokens/t1", None, status=204)
    done = ask("token", "create", "ci", "--role", "node", "--node", "n1", "--ttl", "60", "-o", "json")
    assert peer.last.body == {"name": "ci", "role": "node", "node": "n1", "ttl_s": 60}
    assert json.loads(done.stdout) == made
    assert "not shown again" in done.stderr
    assert ask("token", "revoke", "t1").stdout == "token t1 is revoked\n"


def test_a_secret_that_got_lost_is_a_refusal(ask, peer):
    peer.on("POST", "/v1/tokens", {"id": "t1", "secret": None})
    done = ask("token", "create", "ci", "--role", "reader")
    assert done.exit_code == 1
    assert "revoke the token t1" in done.stderr


def test_settings_are_changed_by_name(ask, peer):
    settings = {"inline_pools": True, "cooldown_s": 300, "reclaim": "never"}
    peer.on("GET", "/v1/settings", settings)
    peer.on("PUT", "/v1/settings", settings)
    assert "cooldown_s" in ask("settings", "show").stdout
    assert ask("settings", "set", "inline_pools=false", "cooldown-s=5", "reclaim=after:60").exit_code == 0
    assert peer.last.body == {"inline_pools": False, "cooldown_s": 5, "reclaim": "after:60"}


@pytest.mark.parametrize(
    ("pair", "part"),
    [
        ("cooldown_s", "NAME=VALUE"),
        ("cooldown=1", "no setting 'cooldown'"),
        ("cooldown_s=soon", "whole number"),
        ("inline_pools=1", "true or false"),
    ],
)
def test_a_setting_that_cannot_be_read_is_a_usage_error(ask, peer, pair, part):
    peer.on("GET", "/v1/settings", {"inline_pools": True, "cooldown_s": 300})
    done = ask("settings", "set", pair)
    assert done.exit_code == 2
    assert part in done.stderr


def test_hostile_names_cannot_steer_the_terminal(ask, peer):
    hostile = "\x1b[2J[red]d/a\u2028\u202e\x9b\u200b"
    item = {"pool": "web", "pod_ref": hostile, "attachments": []}
    peer.on("GET", "/v1/reservations", {"items": [item], "next": None})
    table = ask("reservation", "list").stdout
    assert "\\x1b[2J[red]d/a\\u2028\\u202e\\x9b\\u200b" in table
    for form in ("json", "yaml"):
        text = ask("-o", form, "reservation", "list").stdout
        assert text.replace("\n", "").isprintable()
        assert text.isascii()
    assert json.loads(ask("-o", "json", "reservation", "list").stdout)["items"] == [item]


def test_a_note_is_sent_with_what_it_is_about(ask, peer):
    peer.on("POST", "/v1/events", None, status=204)
    assert ask("note", "switch 3 replaced").exit_code == 0
    assert peer.last.body == {"text": "switch 3 replaced"}
    assert ask("note", "new disk", "--node", "w1").exit_code == 0
    assert peer.last.body == {"text": "new disk", "node": "w1"}
