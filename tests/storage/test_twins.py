"""The state in SQLite and the one in memory are twins: the same commands, the same answers, the same records."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from ipamd.core.addresses import Address
from ipamd.core.decide import decide, expire
from ipamd.core.memory import MemoryState
from ipamd.core.model import Pool
from ipamd.core.outcomes import Outcome
from ipamd.core.ports import View
from ipamd.core.values import replace
from ipamd.storage.digest import digest
from ipamd.storage.records import SqliteRecords
from ipamd.storage.spans import computed_spans, read_spans
from tests.core.world import CheckedState
from tests.storage.driver import Driver, memory_dir
from tests.storage.histories import HISTORIES, Step

QUIET = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def carry_out(memory: MemoryState, driver: Driver, step: Step) -> list[Outcome]:
    """What the entry that the driver applied last does to the state in memory."""
    stamp = driver.stamp._replace(log_index=driver.machine.applied[0])
    memory.carry_out(expire(memory, stamp))
    outcomes = []
    for command in step.commands:
        decision = decide(memory, command, stamp)
        memory.carry_out(decision)
        outcomes.append(decision.outcome)
    return outcomes


@QUIET
@given(HISTORIES)
def test_every_history_gives_equal_answers_and_equal_records(history: list[Step]) -> None:
    with tempfile.TemporaryDirectory(dir=memory_dir()) as place:
        driver, memory = Driver(Path(place) / "data"), CheckedState()
        for step in history:
            driver.log_ms += step.after_ms
            assert driver.run(*step.commands) == carry_out(memory, driver, step)
        assert digest(SqliteRecords(driver.connection)) == digest(memory)
        same_answers(driver.machine.view, memory)
        spans_are_right(driver)
        with driver.state.snapshot() as snapshot:
            same_answers(snapshot, memory)
            counts_sum_up(driver)
        driver.reopen()
        assert digest(SqliteRecords(driver.connection)) == digest(memory)
        assert driver.examine() == []
        driver.close()


@settings(parent=QUIET, max_examples=15)
@given(HISTORIES)
def test_replayed_entries_give_the_same_state_in_whatever_transactions(history: list[Step]) -> None:
    with tempfile.TemporaryDirectory(dir=memory_dir()) as place:
        one, two = Driver(Path(place) / "one"), Driver(Path(place) / "two")
        for step in history:
            one.log_ms += step.after_ms
            one.run(*step.commands)
        two.machine.apply(one.entries)
        assert two.digest() == one.digest()
        one.close()
        two.close()


def same_answers(view: View, memory: View) -> None:
    """Each question of the View that the records alone do not settle."""
    for pool in (one for space in ("default", "blue") for one in memory.pools_of_space(space)):
        assert view.pool(pool.name) == view.pool_by_id(pool.id) == pool
        for subnet in {one.subnet for ranges in pool.sets for one in ranges}:
            assert list(view.pools_on(pool.space, subnet)) == list(memory.pools_on(pool.space, subnet))
        same_free(view, memory, replace(pool, id=10**6))  # as a pool that is not made yet
        same_free(view, memory, pool)
        assert list(view.assigned_of_pool(pool.id)) == list(memory.assigned_of_pool(pool.id))
        assert list(view.attachments_of_pool(pool.id)) == list(memory.attachments_of_pool(pool.id))
    for space in ("default", "blue"):
        assert list(view.pools_of_space(space)) == list(memory.pools_of_space(space))
        same_coolest(view, memory, space)
    for now in (0, 5_000, 100_000, 10**9):
        for limit in (1, 3, 100):
            assert view.due_holds(now, limit) == memory.due_holds(now, limit)
            assert view.due_cooling(now, limit) == memory.due_cooling(now, limit)
            assert view.due_quarantines(now, limit) == memory.due_quarantines(now, limit)
            assert view.due_tombstones(now, limit) == memory.due_tombstones(now, limit)
            assert view.due_parts(now, limit) == memory.due_parts(now, limit)
    for node in ("n1", "n2", "n3", "n4"):
        assert view.attachments_of_node(node, 2, 3) == memory.attachments_of_node(node, 2, 3)
        assert view.boots(node) == memory.boots(node)
        assert view.node(node) == memory.node(node)
        assert list(view.tombstones_of_node(node)) == list(memory.tombstones_of_node(node))
    for prefix in ("_/n1/", "_/n4/", "t/"):
        assert view.reservations_named(prefix) == memory.reservations_named(prefix)
        assert view.cooling_named(prefix) == memory.cooling_named(prefix)
    for container in ("c1", "c2", "c3", "c9"):
        assert view.attachments_of_container(container, "eth0") == memory.attachments_of_container(container, "eth0")
    assert list(view.known_nodes()) == list(memory.known_nodes())
    assert view.mass_silence() == memory.mass_silence()
    assert [view.sighting(one) for one in range(30)] == [memory.sighting(one) for one in range(30)]
    for import_id in ("i1", "i2", "i3"):
        assert view.staged(import_id) == memory.staged(import_id)
    assert view.settings() == memory.settings()
    assert (view.cluster_id(), list(view.members())) == (memory.cluster_id(), list(memory.members()))


def same_free(view: View, memory: View, pool: Pool) -> None:
    for position, inner in enumerate(pool.sets):
        for order, one in enumerate(inner):
            bounds = (one.first - 1, one.first, one.first + 3, (one.first + one.last) // 2, one.last, one.last + 1)
            for first in bounds:
                for last in bounds:
                    place = (pool, position, order, first, last)
                    assert view.next_free(*place) == memory.next_free(*place)


def same_coolest(view: View, memory: View, space: str) -> None:
    for family, first, last in ((4, 0, 2**32 - 1), (4, 0xC0000203, 0xC0000206), (6, 0, 2**128 - 1)):
        for now in (0, 2_000, 100_000):
            place = (space, Address(family, first), Address(family, last), now)
            assert view.oldest_cooling(*place) == memory.oldest_cooling(*place)


def spans_are_right(driver: Driver) -> None:
    """The free spans, kept step by step, are what they come to from scratch."""
    view = driver.machine.view
    for space in ("default", "blue"):
        for pool in view.pools_of_space(space):
            for position, inner in enumerate(pool.sets):
                for order, one in enumerate(inner):
                    kept = tuple(read_spans(driver.connection, view.range_id(pool, position, order)))
                    assert kept == computed_spans(driver.connection, space, one)


def counts_sum_up(driver: Driver) -> None:
    with driver.state.snapshot() as snapshot:
        for pool in snapshot.pools("", 100):
            for counts in snapshot.counts(pool).values():
                assert sum(counts[1:]) == counts.total
                assert min(counts) >= 0
