"""The checker itself: it must accept what may happen and name what must not."""

from __future__ import annotations

import pytest

from tests.cluster.checker import Rules, check
from tests.support.history import Call, History, Read, Shown, Verb

RULES = Rules("10.0.0.0/28", frozenset({"10.0.0.14"}))


def add(pod: str, container: str, at: float, address: str | None, *, done: bool = True) -> Call:
    return Call(pod, Verb.ADD, container, at, at + 0.5, done, address)


def delete(pod: str, container: str, at: float, *, done: bool = True) -> Call:
    return Call(pod, Verb.DEL, container, at, at + 0.5, done)


def late_add(pod: str, container: str, start: float, at: float) -> Call:
    return Call(pod, Verb.ADD, container, at, at + 0.5, done=False, binding_s=start)


def release(pod: str, container: str, binding: float, at: float, freed: str | None) -> Call:
    return Call(pod, Verb.RELEASE, container, at, at + 0.5, True, freed, binding)


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
    "an unanswered ADD is carried out after later calls": [
        add("a", "c1", 1, None, done=False), add("a", "c2", 2, "10.0.0.1"), delete("a", "c2", 3), add("a", "c3", 4, "10.0.0.2"),
    ],
    "an unanswered DEL is carried out late": [
        add("a", "c1", 1, "10.0.0.1"), delete("a", "c1", 2, done=False), add("b", "c2", 3, None), add("b", "c3", 4, "10.0.0.1"),
    ],
    "a release of the current binding": [
        add("a", "c1", 1, "10.0.0.1"), release("a", "c1", 1, 2, "10.0.0.1"), add("b", "c2", 3, "10.0.0.1"),
    ],
    "a release of an earlier binding changes nothing": [
        add("a", "c1", 1, "10.0.0.1"), add("a", "c1", 2, "10.0.0.1"), release("a", "c1", 1, 3, None), seen("a", 9, "c1", "10.0.0.1"),
    ],
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
    "a late ADD came through after the DEL of its container": [
        late_add("a", "c1", 1, 1), delete("a", "c1", 2), seen("a", 9, "c1", "10.0.0.1"),
    ],
    "an unanswered DEL of an earlier container freed": [
        add("a", "c1", 1, "10.0.0.1"), delete("a", "c1", 2, done=False), add("a", "c2", 3, "10.0.0.1"), add("b", "c3", 4, "10.0.0.1"),
    ],
    "a release of an earlier binding freed": [
        add("a", "c1", 1, "10.0.0.1"), add("a", "c1", 2, "10.0.0.1"), release("a", "c1", 1, 3, "10.0.0.1"),
    ],
}  # fmt: skip


def history(calls: list[Call], *reads: Read) -> History:
    return History(calls, list(reads))


def read(first: float, last: float, **held: str) -> Read:
    """A list; `pod="container address"`."""
    return Read(first, last, {pod: Shown(*text.split()) for pod, text in held.items()})


@pytest.mark.parametrize("calls", GOOD.values(), ids=GOOD.keys())
def test_what_may_happen_is_accepted(calls: list[Call]) -> None:
    assert check(history(calls), RULES) == []


@pytest.mark.parametrize("calls", BAD.values(), ids=BAD.keys())
def test_what_must_not_happen_is_named(calls: list[Call]) -> None:
    assert check(history(calls), RULES) != []


LIFE = [
    add("a", "c1", 1, "10.0.0.1"),
    delete("a", "c1", 3),
    add("b", "c2", 5, "10.0.0.1"),
    add("b", "c3", 7, None, done=False),
]


@pytest.mark.parametrize(
    "good",
    [
        read(0, 0.5),
        read(0, 1.2),
        read(0, 1.2, a="c1 10.0.0.1"),
        read(1.6, 2, a="c1 10.0.0.1"),
        read(3.1, 3.2),
        read(3.1, 3.2, a="c1 10.0.0.1"),
        read(2, 6, a="c1 10.0.0.1"),
        read(6, 6.1, b="c2 10.0.0.1"),
        read(9, 9.1, b="c2 10.0.0.1"),
        read(9, 9.1, b="c3 10.0.0.1"),
    ],
)
def test_a_read_that_shows_some_moment_of_its_own_is_accepted(good: Read) -> None:
    assert check(history(LIFE, good), RULES) == []


@pytest.mark.parametrize(
    "bad",
    [
        read(1.6, 2),
        read(0, 0.9, a="c1 10.0.0.1"),
        read(3.6, 4, a="c1 10.0.0.1"),
        read(6, 6.1),
        read(6, 6.1, b="c2 10.0.0.2"),
        read(6, 6.1, b="c3 10.0.0.1"),
        read(6, 6.1, b="c2 10.0.0.1", x="c9 10.0.0.9"),
        read(0, 9, a="c1 10.0.0.1", b="c2 10.0.0.1"),
    ],
)
def test_a_read_that_is_too_old_or_never_was_is_named(bad: Read) -> None:
    assert check(history(LIFE, bad), RULES) != []


def test_members_that_end_alike_are_accepted() -> None:
    held = {"b": Shown("c3", "10.0.0.1")}
    assert check(history(LIFE), RULES, {"n1": held, "n2": dict(held)}) == []


@pytest.mark.parametrize("held", [{}, {"b": Shown("c1", "10.0.0.1")}, {"b": Shown("c2", "10.0.0.1")}])
def test_a_member_that_ends_differently_is_named(held: dict[str, Shown]) -> None:
    assert check(history(LIFE), RULES, {"n1": {"b": Shown("c3", "10.0.0.1")}, "n2": held}) != []


def test_an_acknowledged_add_that_is_gone_in_the_end_is_named() -> None:
    assert check(history([add("a", "c1", 1, "10.0.0.1")]), RULES, {"n1": {}}) != []


def test_only_answered_calls_count() -> None:
    calls = [add("a", "c1", 1, "10.0.0.1"), add("b", "c2", 1, None, done=False), seen("a", 2, "c1", "10.0.0.1")]
    assert history(calls).acknowledged == 1


def test_a_hundred_thousand_calls_are_checked_in_seconds() -> None:
    calls, pods = [], 200
    for number in range(100_000):
        turn, pod = divmod(number, pods)
        name, at = f"p{pod}", turn * 2 + pod / pods
        calls.append(add(name, f"c{turn}", at, f"10.1.0.{pod + 1}") if turn % 3 else delete(name, f"c{turn - 1}", at))
    assert check(history(calls), Rules("10.1.0.0/16")) == []
