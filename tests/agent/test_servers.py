"""Which server is asked next: failures go to the end, the cluster's word is taken within bounds."""

from __future__ import annotations

import pytest

from ipamd.agent.servers import Servers

A, B, C, D = (f"https://{name}:7480" for name in "abcd")


def test_a_failed_server_goes_to_the_end() -> None:
    servers = Servers([A, B, C])
    servers.failed(A)
    assert servers.order() == (B, C, A)
    servers.failed(B)
    assert servers.order() == (C, A, B)
    servers.failed(D)
    assert servers.order() == (C, A, B)


def test_nodes_do_not_all_begin_with_one_server() -> None:
    assert {Servers([A, B, C], first=number).order()[0] for number in range(9)} == {A, B, C}


def test_members_are_learned_and_those_given_stay_behind_them() -> None:
    servers = Servers([A, B])
    servers.failed(A)
    assert servers.learn([f"{C}/", A, C])
    assert servers.told == (C, A)
    assert servers.order() == (A, C, B)
    assert not servers.learn([C, A])
    assert servers.learn([D])
    assert servers.order() == (D, A, B)


def test_what_was_learned_counts_at_the_next_start() -> None:
    assert Servers([A], told=[B, C]).order() == (B, C, A)


@pytest.mark.parametrize(
    "url", ["http://c:7480", "ftp://c:7480", "https://c", "https://u@c:7480", "https://c:7480/x", "https://[c", "", "c"]
)
def test_what_is_no_safe_url_is_not_learned(url: str) -> None:
    servers = Servers([A])
    assert not servers.learn([url])
    assert servers.order() == (A,)


def test_plain_http_is_learned_where_it_was_given() -> None:
    servers = Servers(["http://a:7480"])
    assert servers.learn(["http://c:7480", A])
    assert servers.order() == ("http://c:7480", A, "http://a:7480")
