"""The checker itself: it must accept what may happen and name what must not."""

from __future__ import annotations

import pytest

from tests.kill.checker import check, doubles
from tests.kill.history import Call, History, Verb

SUBNET = "10.0.0.0/28"


def add(pod: str, container: str, at: float, address: str | None, *, done: bool = True) -> Call:
    return Call(pod, Verb.ADD, container, at, at + 0.5, done, address)


def delete(pod: str, container: str, at: float, *, done: bool = True) -> Call:
    return Call(pod, Verb.DEL, container, at, at + 0.5, done)


def seen(pod: str, at: float, container: str | None, address: str | None) -> Call:
    return Call(pod, Verb.SEEN, container, at, at, True, address)


GOOD = {
    "one after the other": [
        add("a", "c1", 1, "10.0.0.1"), delete("a", "c1", 2), add("b", "c2", 3, "10.0.0.1"), seen("b", 9, "c2", "10.0.0.1"),
        seen("a", 9, None, None),
    ],
    "restart without a DEL": [add("a", "c1", 1, "10.0.0.1"), add("a", "c2", 2, "10.0.0.1"), seen("a", 9, "c2", "10.0.0.1")],
    "a late DEL frees nothing": [
        add("a", "c1", 1, "10.0.0.1"), add("a", "c2", 2, "10.0.0.1"), delete("a", "c1", 3), seen("a", 9, "c2", "10.0.0.1"),
    ],
    "an unanswered ADD was carried out": [add("a", "c1", 1, None, done=False), seen("a", 9, "c1", "10.0.0.3")],
    "an unanswered ADD was not": [add("a", "c1", 1, None, done=False), seen("a", 9, None, None)],
    "an unanswered re-ADD was carried out": [
        add("a", "c1", 1, "10.0.0.1"), add("a", "c2", 2, None, done=False), seen("a", 9, "c2", "10.0.0.1"),
    ],
    "an unanswered DEL was carried out, and the address given on": [
        add("a", "c1", 1, "10.0.0.1"), delete("a", "c1", 2, done=False), add("b", "c2", 3, "10.0.0.1"), seen("a", 9, None, None),
    ],
    "the DEL after an unanswered re-ADD frees or is late": [
        add("a", "c1", 1, "10.0.0.1"), add("a", "c2", 2, None, done=False), delete("a", "c1", 3), seen("a", 9, None, None),
    ],
    "a refused ADD": [add("a", "c1", 1, None), seen("a", 9, None, None)],
}  # fmt: skip

BAD = {
    "two pods on one address": [add("a", "c1", 1, "10.0.0.1"), add("b", "c2", 2, "10.0.0.1")],
    "an answered ADD is lost": [add("a", "c1", 1, "10.0.0.1"), seen("a", 9, None, None)],
    "an answered DEL is lost": [add("a", "c1", 1, "10.0.0.1"), delete("a", "c1", 2), seen("a", 9, "c1", "10.0.0.1")],
    "another address after a restart": [add("a", "c1", 1, "10.0.0.1"), add("a", "c2", 2, "10.0.0.2")],
    "another address is shown": [add("a", "c1", 1, "10.0.0.1"), seen("a", 9, "c1", "10.0.0.2")],
    "a late DEL freed": [
        add("a", "c1", 1, "10.0.0.1"), add("a", "c2", 2, "10.0.0.1"), delete("a", "c1", 3), seen("a", 9, None, None),
    ],
    "an answered re-ADD is lost": [
        add("a", "c1", 1, "10.0.0.1"), add("a", "c2", 2, "10.0.0.1"), seen("a", 9, "c1", "10.0.0.1"),
    ],
    "an unanswered re-ADD changed the address": [
        add("a", "c1", 1, "10.0.0.1"), add("a", "c2", 2, None, done=False), seen("a", 9, "c2", "10.0.0.2"),
    ],
    "a holder is refused": [add("a", "c1", 1, "10.0.0.1"), add("a", "c2", 2, None)],
    "the broadcast address": [add("a", "c1", 1, "10.0.0.15")],
    "an address of nowhere": [add("a", "c1", 1, "10.9.0.1")],
    "the gateway": [add("a", "c1", 1, "10.0.0.14")],
    "given away while an unanswered re-ADD leaves no doubt": [
        add("a", "c1", 1, "10.0.0.1"), add("a", "c2", 2, None, done=False), add("b", "c3", 3, "10.0.0.1"),
        seen("a", 9, "c1", "10.0.0.1"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("calls", GOOD.values(), ids=GOOD.keys())
def test_what_may_happen_is_accepted(calls: list[Call]) -> None:
    assert check(calls, SUBNET) == []


@pytest.mark.parametrize("calls", BAD.values(), ids=BAD.keys())
def test_what_must_not_happen_is_named(calls: list[Call]) -> None:
    assert check(calls, SUBNET, frozenset({"10.0.0.14"})) != []


def test_two_pods_that_show_one_address() -> None:
    assert doubles([("a", "10.0.0.1"), ("b", "10.0.0.2")]) == []
    assert doubles([("a", "10.0.0.1"), ("b", "10.0.0.1")]) == ["10.0.0.1 is held by a and b"]


def test_only_answered_calls_count() -> None:
    history = History(
        [add("a", "c1", 1, "10.0.0.1"), add("b", "c2", 1, None, done=False), seen("a", 2, "c1", "10.0.0.1")]
    )
    assert history.acknowledged == 1
