"""After a restore too the state in SQLite and the one in memory are twins, and what is kept as free is what is free."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ipamd.core.addresses import parse_address
from ipamd.core.commands import ClaimLiving, Command, ConfirmPool, Found
from ipamd.core.model import Settings
from ipamd.core.restorecommands import Living, Settled
from ipamd.core.restoring import Backup, restore
from ipamd.core.withheld import is_withheld
from ipamd.storage.digest import digest
from ipamd.storage.records import SqliteRecords
from ipamd.storage.restore import renew
from tests.core.restored import MEMBERS
from tests.core.world import ORIGIN, CheckedState
from tests.storage.driver import WALL_MS, Driver, memory_dir
from tests.storage.histories import ADDRESSES, CONTAINERS, HISTORIES, IFNAMES, NODES, PODS, POOLS, SPACES, STEPS, Step
from tests.storage.test_twins import QUIET, carry_out, counts_sum_up, same_answers, spans_are_right

FOUNDED = Step(1, (Found(ORIGIN, "old", Settings(), MEMBERS),))

_LIVING = st.builds(
    Living,
    PODS,
    IFNAMES,
    CONTAINERS,
    st.lists(ADDRESSES, min_size=1, max_size=2, unique=True).map(tuple),
    st.none() | st.just("k"),
    st.none() | POOLS,
)
_SETTLED = st.builds(Settled, SPACES, ADDRESSES, NODES, CONTAINERS)
_CLAIMS = st.builds(
    ClaimLiving,
    st.just(ORIGIN),
    NODES,
    st.lists(_LIVING, min_size=1, max_size=3).map(tuple),
    st.lists(_SETTLED, max_size=1).map(tuple),
)
_CONFIRMS: st.SearchStrategy[Command] = st.builds(ConfirmPool, st.just(ORIGIN), POOLS, st.booleans())
AFTER = st.lists(
    STEPS | st.builds(Step, st.just(1), (_CLAIMS | _CLAIMS | _CONFIRMS).map(lambda one: (one,))),
    min_size=4,
    max_size=16,
)


@settings(parent=QUIET, max_examples=12)
@given(HISTORIES, AFTER)
def test_a_restored_history_goes_on_alike_in_both(before: list[Step], after: list[Step]) -> None:
    with tempfile.TemporaryDirectory(dir=memory_dir()) as place:
        driver, memory = Driver(Path(place) / "data"), CheckedState()
        for step in (FOUNDED, *before):
            driver.log_ms += step.after_ms
            assert driver.run(*step.commands) == carry_out(memory, driver, step)
        index, stamp = driver.machine.applied[0], driver.stamp
        driver.close()
        renew(driver.data_dir, "new", WALL_MS)
        memory.carry_out(restore(memory, memory, Backup(index, stamp.log_ms, stamp.wall_ms, "new", WALL_MS)))
        driver.open()
        driver.log_ms += 1
        assert digest(SqliteRecords(driver.connection)) == digest(memory)
        spans_are_right(driver)
        for step in after:
            driver.log_ms += step.after_ms
            assert driver.run(*step.commands) == carry_out(memory, driver, step)
        assert digest(SqliteRecords(driver.connection)) == digest(memory)
        same_answers(driver.machine.view, memory)
        spans_are_right(driver)
        with driver.state.snapshot() as snapshot:
            same_answers(snapshot, memory)
            assert snapshot.restored() == memory.restored()
            assert [one.name for one in snapshot.unconfirmed()] == [one.name for one in memory.unconfirmed()]
            assert snapshot.disputes() == memory.disputes()
            for text in ("192.0.2.1", "192.0.2.12", "2001:db8::3", "203.0.113.1"):
                address = parse_address(text)
                assert list(snapshot.unconfirmed_around(address)) == list(memory.unconfirmed_around(address))
                assert is_withheld(snapshot, "default", address) is is_withheld(memory, "default", address)
            counts_sum_up(driver)
        driver.reopen()
        spans_are_right(driver)
        assert driver.examine() == []
        driver.close()
