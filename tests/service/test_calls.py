"""The memory of the last CNI calls."""

from __future__ import annotations

import pytest

from ipamd.service.calls import CallRecord, Calls


def record(number: int) -> CallRecord:
    return CallRecord(number, "add", "n1", "d/a", ("web",), "c1", "eth0", 0, 1.5, f"r{number}")


def noted(count: int) -> Calls:
    calls = Calls()
    for number in range(1, count + 1):
        calls.note(record(number))
    return calls


def test_the_newest_comes_first_and_pages_join_without_a_double():
    calls = noted(5)
    first = calls.page(None, 2)
    assert ([one.record.request_id for one in first.items], first.more) == (["r5", "r4"], True)
    calls.note(record(6))
    rest = calls.page(first.items[-1].number, 3)
    assert ([one.record.request_id for one in rest.items], rest.more) == (["r3", "r2", "r1"], False)


def test_a_thousand_are_remembered():
    items = noted(1002).page(None, 5000).items
    assert (len(items), items[0].number, items[-1].number) == (1000, 1002, 3)


def test_those_of_a_pod_are_found_with_the_prefix_of_its_cluster_or_without():
    calls = noted(3)
    calls.note(record(4)._replace(pod_ref="east:d/a"))
    calls.note(record(5)._replace(pod_ref="bad/a"))
    calls.note(record(6)._replace(pod_ref=None))
    assert [one.number for one in calls.page(None, 10, "d/a").items] == [4, 3, 2, 1]
    assert [one.number for one in calls.page(None, 10, "east:d/a").items] == [4]
    assert [one.number for one in calls.page(4, 2, "d/a").items] == [3, 2]


def test_all_are_counted_by_verb_and_code_with_the_time_they_took():
    calls = noted(1500)
    calls.note(record(1)._replace(verb="del", code=11, took_ms=700, spooled=True))
    assert calls.by_code == {("add", 0): 1500, ("del", 11): 1}
    assert sum(calls.times["add"].counts) == 1500
    assert calls.times["add"].total == pytest.approx(2.25)
    assert calls.times["del"].counts[calls.times["del"].bounds.index(1.0)] == 1
    assert calls.spooled == 1
