"""The verbs of pools: what they ask for, and what they show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipamctl.pool.first_host import gateway_notes

WEB: dict[str, Any] = {
    "name": "web",
    "space": "default",
    "ranges": [[{"subnet": "10.0.0.0/24", "exclude": [], "gateway": "10.0.0.1"}]],
    "strategy": "lowest",
    "cooldown_s": 300,
    "reclaim": "never",
}


def pool_of(**entry: object) -> dict[str, object]:
    return {"name": "p", "ranges": [[entry]]}


def test_create_sends_what_is_given(ask, peer):
    peer.on("POST", "/v1/pools", WEB, status=201)
    done = ask(
        *("pool", "create", "web", "--subnet", "10.0.0.0/24", "--range-start", "10.0.0.9", "--range-end", "10.0.0.99"),
        *("--exclude", "10.0.0.20", "--exclude", "10.0.0.32/28", "--gateway", "10.0.0.1", "--space", "blue"),
        *("--strategy", "random", "--cooldown", "0", "--cooldown-min", "0", "--hold", "-1", "--reclaim", "after:60"),
        *("--allow-overlap", "--route", "0.0.0.0/0", "--route", "10.9.0.0/16,10.0.0.2", "--label", "team=a=b"),
    )
    assert (done.exit_code, done.stderr) == (0, "")
    assert peer.last.body == {
        "name": "web",
        "subnet": "10.0.0.0/24",
        "range_start": "10.0.0.9",
        "range_end": "10.0.0.99",
        "exclude": ["10.0.0.20", "10.0.0.32/28"],
        "gateway": "10.0.0.1",
        "space": "blue",
        "strategy": "random",
        "cooldown_s": 0,
        "cooldown_min_s": 0,
        "hold_s": -1,
        "reclaim": "after:60",
        "allow_overlap": True,
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.9.0.0/16", "gw": "10.0.0.2"}],
        "labels": {"team": "a=b"},
    }


def test_create_without_gateway_says_that_the_first_host_is_handed_out(ask, peer):
    peer.on("POST", "/v1/pools", {**WEB, "ranges": [[{"subnet": "10.0.0.0/24"}]]}, status=201)
    done = ask("-o", "json", "pool", "create", "web", "--subnet", "10.0.0.0/24")
    assert done.stderr.count("\n") == 1
    assert "first host, 10.0.0.1, will be handed out" in done.stderr
    assert json.loads(done.stdout)["name"] == "web"


@pytest.mark.parametrize(
    ("entry", "host"),
    [
        ({"subnet": "10.0.0.0/24", "gateway": None, "exclude": ["10.0.0.2"]}, "10.0.0.1"),
        ({"subnet": "10.0.0.0/24", "range_start": "10.0.0.32"}, "10.0.0.32"),
        ({"subnet": "10.0.0.0/24", "range_start": "10.0.0.0"}, "10.0.0.1"),
        ({"subnet": "10.0.0.8/31"}, "10.0.0.8"),
        ({"subnet": "10.0.0.8/32"}, "10.0.0.8"),
        ({"subnet": "2001:db8::/64"}, "2001:db8::1"),
        ({"subnet": "2001:db8::/127"}, "2001:db8::"),
    ],
)
def test_the_first_host_is_the_first_that_is_handed_out(entry, host):
    (note,) = gateway_notes(pool_of(**entry))
    assert f"first host, {host}, " in note


@pytest.mark.parametrize(
    "entry",
    [
        {"subnet": "10.0.0.0/24", "gateway": "10.0.0.254"},
        {"subnet": "10.0.0.0/24", "exclude": ["10.0.0.0/29"]},
        {"subnet": "10.0.0.0/24", "exclude": ["2001:db8::/64", "10.0.0.1-10.0.0.4"]},
        {"subnet": "10.0.0.0/24", "exclude": ["10.0.0.1"]},
    ],
)
def test_a_first_host_that_is_kept_back_needs_no_word(entry):
    assert list(gateway_notes(pool_of(**entry))) == []


@pytest.mark.parametrize("name", ["pool.json", "pool.yaml"])
def test_create_reads_a_file(ask, peer, tmp_path, name):
    peer.on("POST", "/v1/pools", WEB)
    (tmp_path / name).write_text(json.dumps({"ranges": [[{"subnet": "10.0.0.0/24"}]]}))
    assert ask("pool", "create", "web", "--file", str(tmp_path / name)).exit_code == 0
    assert peer.last.body == {"name": "web", "ranges": [[{"subnet": "10.0.0.0/24"}]]}


def test_create_reads_stdin(ask, peer):
    peer.on("POST", "/v1/pools", WEB)
    assert ask("pool", "create", "--file", "-", stdin='{"name": "w"}').exit_code == 0
    assert peer.last.body == {"name": "w"}


def test_stdin_may_be_yaml_and_has_no_key_twice(ask, peer):
    peer.on("POST", "/v1/pools", WEB)
    assert ask("pool", "create", "--file", "-", stdin="name: w\nlabels: {a: b}\n").exit_code == 0
    assert peer.last.body == {"name": "w", "labels": {"a": "b"}}
    done = ask("pool", "create", "--file", "-", stdin="name: w\nlabels: {a: b, a: c}\n")
    assert (done.exit_code, "stdin cannot be read: it has the key 'a' twice" in done.stderr) == (2, True)


def test_a_file_that_is_missing_is_named_once(ask):
    done = ask("pool", "create", "--file", "/nowhere/p.json")
    assert done.stderr.endswith("Error: /nowhere/p.json cannot be read: no such file or directory\n")


@pytest.mark.parametrize(
    ("args", "file", "part"),
    [
        ((), None, "NAME and --subnet, or --file"),
        (("web",), None, "NAME and --subnet, or --file"),
        (("web",), '{"name": "other"}', "describes the pool 'other', not 'web'"),
        (("web", "--gateway", "10.0.0.1"), "{}", "--file has the whole definition"),
        ((), "[]", "does not hold one pool"),
        ((), "{", "cannot be read"),
        ((), '{"name": "a", "name": "b"}', "has the key 'name' twice"),
        (("web", "--subnet", "10.0.0.0/24", "--label", "x"), None, "KEY=VALUE"),
    ],
)
def test_a_create_that_cannot_be_meant_is_a_usage_error(ask, tmp_path, args, file, part):
    if file is not None:
        (tmp_path / "p.json").write_text(file)
        args = (*args, "--file", str(tmp_path / "p.json"))
    done = ask("pool", "create", *args)
    assert done.exit_code == 2
    assert part in done.stderr


def test_list_shows_ranges_and_alternatives(ask, peer):
    dual = {
        **WEB,
        "name": "dual",
        "ranges": [
            [{"subnet": "10.0.0.0/24", "range_start": "10.0.0.9"}, {"subnet": "10.0.1.0/24"}],
            [{"subnet": "fd00::/64"}],
        ],
    }
    peer.on("GET", "/v1/pools", {"items": [WEB, dual], "next": None})
    lines = ask("pool", "list").stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["NAME", "SPACE", "RANGES", "STRATEGY"],
        ["web", "default", "10.0.0.0/24", "lowest"],
        ["dual", "default", "10.0.0.0/24", "(from", "10.0.0.9)", "|", "10.0.1.0/24", "+", "fd00::/64", "lowest"],
    ]


def test_show_prints_the_object_exactly_as_json(ask, peer):
    peer.on("GET", "/v1/pools/web", WEB)
    assert json.loads(ask("pool", "show", "web", "-o", "json").stdout) == WEB
    text = ask("pool", "show", "web").stdout
    assert "ranges[0][0]" in text
    assert "10.0.0.0/24, gateway 10.0.0.1" in text


def test_update_changes_what_is_given_and_goes_on_following_the_settings(ask, peer):
    peer.on("GET", "/v1/pools/web", WEB)
    peer.on("GET", "/v1/settings", {"cooldown_s": 300, "reclaim": "never", "inline_pools": True})
    peer.on("PUT", "/v1/pools/web", {**WEB, "stranded": [{"pod_ref": "d/a", "ifname": "eth0", "address": "10.0.0.7"}]})
    done = ask("pool", "update", "web", "--exclude", "10.0.0.7", "--gateway", "", "--strategy", "random", "--force")
    assert done.exit_code == 0
    assert peer.last.query == {"force": "true"}
    assert peer.last.body == {
        "name": "web",
        "space": "default",
        "ranges": [[{"subnet": "10.0.0.0/24", "exclude": ["10.0.0.7"]}]],
        "strategy": "random",
    }
    assert "d/a" in done.stdout


def test_update_keeps_a_cooldown_of_its_own(ask, peer):
    peer.on("GET", "/v1/pools/web", {**WEB, "cooldown_s": 7})
    peer.on("GET", "/v1/settings", {"cooldown_s": 300, "reclaim": "never"})
    peer.on("PUT", "/v1/pools/web", WEB)
    ask("pool", "update", "web", "--label", "a=b", "--dry-run")
    assert (peer.last.body["cooldown_s"], peer.last.query) == (7, {"dry_run": "true"})


def test_update_of_one_range_among_several_needs_a_file(ask, peer):
    peer.on("GET", "/v1/pools/web", {**WEB, "ranges": WEB["ranges"] * 2})
    peer.on("GET", "/v1/settings", {})
    done = ask("pool", "update", "web", "--gateway", "10.0.0.2")
    assert done.exit_code == 2
    assert "has 2 ranges" in done.stderr


def test_update_with_nothing_is_a_usage_error(ask):
    assert ask("pool", "update", "web").exit_code == 2


def test_delete_shows_whom_it_freed(ask, peer):
    peer.on("DELETE", "/v1/pools/web", {"stranded": [{"pod_ref": "d/a", "ifname": "eth0", "address": "10.0.0.7"}]})
    done = ask("pool", "delete", "web", "--force")
    assert peer.last.query == {"force": "true"}
    assert "10.0.0.7" in done.stdout
    assert done.stdout.endswith("pool web is deleted\n")
    assert ask("pool", "delete", "web", "--dry-run").stdout.endswith("pool web would be deleted\n")


def test_delete_of_a_pool_in_use_is_refused(ask, peer):
    peer.refuses("DELETE", "/v1/pools/web", 409, "pool_in_use", "pool web has 3 reservations")
    done = ask("pool", "delete", "web")
    assert (done.exit_code, done.stderr) == (1, "ipamctl: pool web has 3 reservations\n")


def test_usage_shows_a_line_a_family(ask, peer):
    counts = {"total": 254, "bound": 3, "free": 251, "held": 0}
    peer.on("GET", "/v1/pools/web/usage", {"ipv4": counts, "ipv6": {"total": "18446744073709551615", "bound": 1}})
    lines = ask("pool", "usage", "web").stdout.splitlines()
    assert lines[1].split()[:4] == ["web", "ipv4", "254", "3"]
    assert lines[2].split()[:3] == ["web", "ipv6", "18446744073709551615"]
