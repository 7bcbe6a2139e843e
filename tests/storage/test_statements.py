"""No statement of the store walks a table: the plan of each goes by an index, whatever grows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from ipamd.storage import (
    doubts,
    history,
    listing,
    ops,
    pool_rows,
    retention,
    snapshot,
    spans,
    statements,
    usage,
    writer,
)
from ipamd.storage.compiled import sql
from ipamd.storage.tables import pools
from tests.storage.driver import Driver

MODULES = (doubts, history, listing, ops, pool_rows, retention, snapshot, spans, statements, usage, writer)
SMALL = {"meta", "cluster", "settings", "members", "tokens", "mass_silence", "restored", "disputes", "anon_1"}
"""Tables of a few rows, and subqueries that are limited. Disputes are there only while a restore is not confirmed."""

WHOLE = {
    "statements.NODES",  # all of them, when some are lost
    "doubts._LOST",  # an index of just these
    "statements.NEXT_DUE",  # the least of an index: its first entry
    "history._OLDEST",  # limited to one
    "statements.UNCONFIRMED",  # all of them, when somebody asks
    "statements.UNCONFIRMED_AT",  # while a restore is not confirmed: by a report that does not name the pool
    "ops._COUNT_KEYED",  # once, at the start
    "writer._ALL_POOLS",  # likewise
    "retention._OLDEST",  # limited to one
    "retention._COUNT_AGED",  # limited
    "ops._DROP_OLDEST_KEYED",  # limited
    "listing._SPACES",  # an index over pools alone
    "listing._IN_STATE",  # limited, over an index of just these
    "snapshot._UNCLAIMED_COUNT",  # an index of just these, which a change-over empties
}


def texts(module: ModuleType) -> Iterator[tuple[str, str]]:
    for name, it in vars(module).items():
        for text in it.values() if isinstance(it, dict) else (it,):
            first = text[0] if isinstance(text, tuple) and text else text
            if isinstance(first, str) and re.match(r"(SELECT|UPDATE|DELETE|INSERT) ", first):
                yield f"{module.__name__.split('.')[-1]}.{name}", first


ALL = [one for module in MODULES for one in texts(module)]


def test_the_statements_are_found() -> None:
    assert len(ALL) > 70
    assert {name for name, _ in ALL} >= WHOLE


@pytest.mark.parametrize(("name", "text"), ALL)
def test_it_goes_by_an_index(driver: Driver, name: str, text: str) -> None:
    plan = [str(row[3]) for row in driver.rows(f"EXPLAIN QUERY PLAN {text}", *[None] * text.count("?"))]
    scanned = {step.split()[1] for step in plan if step.startswith("SCAN")}
    assert scanned <= SMALL or name in WHOLE, plan


def test_a_constant_that_would_hide_among_the_parameters_is_refused() -> None:
    with pytest.raises(TypeError, match="hides the constants"):
        sql(pools.select().where(pools.c.name == "p"))
