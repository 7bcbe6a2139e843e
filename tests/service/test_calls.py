"""The memory of the last CNI calls."""

from __future__ import annotations

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
