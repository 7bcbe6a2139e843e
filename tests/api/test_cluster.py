"""The routes of the cluster on a server that is alone: what is checked before anything is asked of others."""

from __future__ import annotations

from typing import Any

import pytest

from ipamd import __version__
from tests.support.stack import Stack

GOOD = {"name": "n2", "raft": "n2.example:7481", "api": "https://n2.example:7480"}


async def test_a_cluster_of_one_is_shown_whole(stack: Stack) -> None:
    got = await stack.ask("GET", "/v1/cluster")
    assert got.status == 200
    (member,) = got.json["members"]
    assert (got.json["leader"], member["name"], member["reachable"], member["lag"]) == ("n1", "n1", True, 0)
    assert (member["certificate_days"], member["digest"]) == (None, None)
    assert member["version"] == __version__


async def test_a_cluster_of_one_has_nobody_to_compare_its_state_with(stack: Stack) -> None:
    got = await stack.ask("POST", "/v1/cluster/verify")
    assert got.status == 200
    assert [(one["name"], one["digest"]) for one in got.json["members"]] == [("n1", None)]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": "a b"}, "name 'a b' must be"),
        ({"raft": "n2.example"}, "is not HOST:PORT"),
        ({"raft": "n2.example:0"}, "is not HOST:PORT"),
        ({"raft": "2001:db8::1:1"}, "is not HOST:PORT"),
        ({"api": "n2.example:7480"}, "is not a URL"),
        ({"api": "ftp://n2.example:7480"}, "is not a URL"),
        ({"api": "https://n2.example:7480/x"}, "is not a URL"),
        ({"api": "https://u:p@n2.example:7480"}, "is not a URL"),
        ({"api": "https://n2.example:99999"}, "is not a URL"),
        ({"member_id": "xyz"}, "is not 32 hex digits"),
    ],
)
async def test_what_could_be_no_member_is_refused(stack: Stack, change: dict[str, Any], sentence: str) -> None:
    got = await stack.ask("POST", "/v1/cluster/members", {**GOOD, **change})
    assert (got.status, got.json["code"]) == (400, "invalid_request")
    assert sentence in got.json["detail"]


async def test_who_meets_no_others_takes_nobody_in(stack: Stack) -> None:
    got = await stack.ask("POST", "/v1/cluster/members", GOOD)
    assert got.status == 400
    assert "--tls-cert" in got.json["detail"]
    assert len((await stack.ask("GET", "/v1/cluster")).json["members"]) == 1


async def test_the_last_member_stays(stack: Stack) -> None:
    got = await stack.ask("DELETE", "/v1/cluster/members/n1")
    assert (got.status, got.json["code"]) == (409, "last_member")
    got = await stack.ask("DELETE", "/v1/cluster/members/n7")
    assert (got.status, got.json["code"]) == (404, "not_found")


async def test_nobody_else_can_lead(stack: Stack) -> None:
    assert (await stack.ask("POST", "/v1/cluster/leader", {"name": "n1"})).status == 200
    assert (await stack.ask("POST", "/v1/cluster/leader", {"name": "n2"})).status == 404
    got = await stack.ask("POST", "/v1/cluster/leader", {})
    assert got.status == 400
    assert "no other member" in got.json["detail"]
