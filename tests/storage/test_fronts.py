"""What is kept of where ranges are free next never differs from what a look into the table would say."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipamd.core.addresses import Address
from ipamd.core.changes import Occupy, Put, Vacate
from ipamd.core.model import Pool
from ipamd.storage.fronts import Fronts
from ipamd.storage.spans import read_spans
from tests.core.world import definition, range_of
from tests.storage.driver import Driver, memory_dir

BASE, FIRST, LAST = 0xC000_0200, 0xC000_0202, 0xC000_020C

ADDRESSES = st.integers(FIRST - 1, LAST + 1)
STEPS = st.lists(st.tuples(st.sampled_from(["take", "take first", "give", "ask"]), ADDRESSES, ADDRESSES), max_size=40)


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_a_search_finds_what_a_set_of_numbers_has(steps: list[tuple[str, int, int]]) -> None:
    with tempfile.TemporaryDirectory(dir=memory_dir()) as place:
        driver = Driver(Path(place) / "data")
        view, writer = driver.machine.view, driver.machine._writer
        pool = Pool(1, definition("p", range_of("192.0.2.0/28", "192.0.2.2", "192.0.2.12")), 1)
        driver.connection.execute("BEGIN")
        writer.carry_out([Put(pool)])
        stored = view.pool("p")
        assert stored is not None
        free = set(range(FIRST, LAST + 1))
        for what, one, other in steps:
            found = view.next_free(stored, 0, 0, one, other)
            assert found == min((number for number in free if one <= number <= other), default=None)
            number = found if what == "take first" and found is not None else one
            if what == "give":
                writer.carry_out([Vacate("default", Address(4, number))])
                free |= {number} & set(range(FIRST, LAST + 1))
            elif what != "ask":
                writer.carry_out([Occupy("default", Address(4, number))])
                free -= {number}
            assert {n for span in read_spans(driver.connection, 1) for n in range(span.first, span.last + 1)} == free
        driver.close()


def test_one_address_after_another_is_found_without_a_look() -> None:
    fronts = Fronts()
    assert fronts.next_free(1, 2) is None
    fronts.found(1, 2, 5)
    assert [fronts.next_free(1, start) for start in (1, 2, 5, 6)] == [None, 5, 5, None]
    fronts.taken(1, 5, 9)
    assert [fronts.next_free(1, start) for start in (1, 2, 6, 9, 10)] == [None, 6, 6, 9, None]
    assert fronts.span_around(1, 8) == (6, 9)
    fronts.taken(1, 8, 9)
    assert [fronts.span_around(1, number) for number in (7, 8)] == [(6, 7), None]
    fronts.forget(1)
    assert fronts.next_free(1, 6) is None
