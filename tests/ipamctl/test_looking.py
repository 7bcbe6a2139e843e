"""What one looks with when a pod does not start: `why` without a pool, `node calls` of a pod, reads without a leader."""

from __future__ import annotations

import json
from typing import Any

import pytest

ACCOUNT: dict[str, Any] = {"pool": "web", "code": None, "detail": "it would get 10.0.0.6", "ranges": []}
NONE: dict[str, Any] = {"items": [], "next": None}
AWAY = {"status": 503, "code": "unavailable", "detail": "there is no leader at the moment", "outcome": "none"}


def add(*pools: str, code: int = 0, msg: str | None = None, verb: str = "add") -> dict[str, Any]:
    return {"at": "2030", "verb": verb, "pod_ref": "d/a", "pools": list(pools), "code": code, "msg": msg, "ms": 1}


@pytest.fixture
def pools(peer):
    """Three pools that can be asked why."""
    for name in ("web", "db", "old"):
        peer.on("GET", f"/v1/pools/{name}/why", {**ACCOUNT, "pool": name})
    peer.on("GET", "/v1/pools", {"items": [{"name": name} for name in ("db", "old", "web")], "next": None})
    peer.on("GET", "/v1/reservations", NONE)
    peer.on("GET", "/v1/calls", NONE)
    return peer


def asked_of(done) -> list[str]:
    assert done.exit_code == 0, done.output
    return [item["pool"] for item in json.loads(done.stdout)["items"]]


def test_a_pod_is_explained_in_the_pools_that_it_has_or_asked_for(ask, pools):
    pools.on("GET", "/v1/reservations", {"items": [{"pool": "db"}], "next": None})
    calls = [add("web", code=110, msg="pool web has no free address"), add("web", "db"), add("old", verb="check")]
    pools.on("GET", "/v1/calls", {"items": calls, "next": None})
    done = ask("why", "--pod", "d/a", "-o", "json")
    assert asked_of(done) == ["db", "web"]
    assert "its last ADD, at 2030, was refused with code 110: pool web has no free address" in done.stderr
    filters = [asked.query.get("pod_ref") for asked in pools.asked]
    assert set(filters) == {"d/a"}


def test_a_pod_that_nobody_knows_is_explained_in_every_pool(ask, pools):
    assert asked_of(ask("why", "--pod", "d/a", "-o", "json")) == ["db", "old", "web"]


def test_a_pod_whose_name_lacks_that_of_its_cluster_is_the_one_that_called(ask, pools):
    pools.on("GET", "/v1/reservations", NONE, {"items": [{"pool": "old"}], "next": None})
    pools.on("GET", "/v1/calls", {"items": [{**add("web"), "pod_ref": "east:d/a"}], "next": None})
    done = ask("why", "--pod", "d/a", "-o", "json")
    assert asked_of(done) == ["old", "web"]
    assert done.stderr == "ipamctl: pod d/a is east:d/a here\n"
    assert [asked.query["pod_ref"] for asked in pools.asked] == ["d/a", "d/a", "east:d/a", "east:d/a", "east:d/a"]
    ask("why", "web", "--pod", "d/a")
    assert pools.last.query == {"pod_ref": "east:d/a"}


def test_a_name_that_several_clusters_have_is_left_as_it_is(ask, pools):
    calls = [{**add("web"), "pod_ref": f"{cluster}:d/a"} for cluster in ("east", "west")]
    pools.on("GET", "/v1/calls", {"items": calls, "next": None})
    assert ask("why", "web", "--pod", "d/a").exit_code == 0
    assert pools.last.query == {"pod_ref": "d/a"}


def test_who_may_not_see_the_calls_is_told_of_the_pool(ask, pools):
    pools.refuses("GET", "/v1/calls", 403, "forbidden", "the role node may not do this")
    assert ask("why", "web", "--pod", "d/a").exit_code == 0
    assert pools.last.query == {"pod_ref": "d/a"}


def test_a_pool_that_was_asked_for_and_is_not_there_is_the_answer(ask, pools):
    pools.on("GET", "/v1/calls", {"items": [add("wbe", code=7, msg="there is no pool wbe")], "next": None})
    pools.refuses("GET", "/v1/pools/wbe/why", 404, "pool_not_found", "there is no pool wbe")
    done = ask("why", "--pod", "d/a")
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (4, "ipamctl: there is no pool wbe")
    pools.on("GET", "/v1/reservations", {"items": [{"pool": "db"}], "next": None})
    done = ask("why", "--pod", "d/a", "-o", "json")
    assert (asked_of(done), done.stderr.splitlines()[-1]) == (["db"], "ipamctl: there is no pool wbe")


def test_calls_of_a_pod_are_asked_for_and_say_why(ask, peer):
    peer.on("GET", "/v1/calls", {"items": [add("web", code=110, msg="pool web is full")], "next": None})
    done = ask("node", "calls", "--pod", "d/a")
    assert peer.last.query == {"pod_ref": "d/a", "limit": "1000"}
    assert done.stdout.splitlines()[1].endswith("pool web is full")


def test_after_the_first_read_without_a_leader_no_other_waits_for_one(ask, pools):
    table = {path: list(answers) for (_, path), answers in pools.table.items()}
    for path, answers in table.items():
        pools.table["GET", path] = [(503, AWAY)] if path == "/v1/reservations" else answers
    pools.table["GET", "/v1/reservations"].append((200, NONE))
    pools.headers = {"Ipamd-Index": "17", "Ipamd-Stale": "true"}
    done = ask("why", "--pod", "d/a", "-o", "json")
    assert asked_of(done) == ["db", "old", "web"]
    assert done.stderr.count("no leader answers") == 1
    assert "log index 17" in done.stderr
    assert [asked.query.get("stale") for asked in pools.asked] == [None, *["ok"] * (len(pools.asked) - 1)]
