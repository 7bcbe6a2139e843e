"""What a restore withholds costs the same for a small pool, a /8 and a /64: it is said of pools, never of addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipamd.core.addresses import parse_address
from ipamd.core.commands import Add, ClaimLiving, ConfirmPool, CreatePool, Found, PoolRequest
from ipamd.core.inventory import Inventory, Listed
from ipamd.core.living import claims_of
from ipamd.core.model import Owner, Settings
from ipamd.core.outcomes import Granted, Refused
from ipamd.core.restorecommands import Living
from ipamd.storage.restore import renew
from tests.core.restored import MEMBERS
from tests.core.world import ORIGIN, definition, range_of
from tests.storage.driver import WALL_MS, Driver

PODS = 20
CASES = [
    ("192.0.2.0/24", "192.0.2", 254),
    ("10.0.0.0/8", "10.0.7", 2**24 - 2),
    ("2001:db8::/64", "2001:db8", 2**64 - 1),
]


def add(pod: str, *addresses: str) -> Add:
    wanted = tuple(map(parse_address, addresses))
    return Add(ORIGIN, (PoolRequest("p"),), pod, "eth0", Owner(f"c-{pod}", "n1", "k"), addresses=wanted)


@pytest.mark.parametrize(("subnet", "begin", "total"), CASES, ids=str)
def test_nothing_is_kept_for_single_addresses(tmp_path: Path, subnet: str, begin: str, total: int) -> None:
    driver = Driver(tmp_path)
    driver.run(Found(ORIGIN, "old", Settings(), MEMBERS))
    driver.run(CreatePool(ORIGIN, definition("p", subnet)))
    dot = "::" if ":" in begin else "."
    for number in range(PODS):
        driver.run(add(f"t/{number}", f"{begin}{dot}{3 * number + 2}"))
    free = driver.rows("SELECT count(*) FROM free_spans")
    driver.close()
    renew(tmp_path, "new", WALL_MS)
    driver.open()
    assert driver.rows("SELECT count(*) FROM free_spans") == [(0,)]
    assert driver.rows("SELECT count(*) FROM unconfirmed") == [(1,)]
    with driver.state.snapshot() as state:
        (counts,) = state.counts(state.pools("", 1)[0]).values()
        assert (counts.total, counts.bound, counts.withheld, counts.free) == (total, PODS, total - PODS, 0)
    (refused,) = driver.run(add("t/new"))
    assert isinstance(refused, Refused)
    driver.run(ConfirmPool(ORIGIN, "p"))
    assert driver.rows("SELECT count(*) FROM free_spans") == free
    (granted,) = driver.run(add("t/new"))
    assert isinstance(granted, Granted)
    assert driver.examine() == []
    driver.close()


def test_what_a_report_claims_is_looked_for_once_and_not_address_by_address(tmp_path: Path) -> None:
    """A node may list tens of thousands of addresses, and a pool may have 256 ranges."""
    driver = Driver(tmp_path)
    driver.run(Found(ORIGIN, "old", Settings(), MEMBERS))
    ranges = tuple(range_of(f"10.0.{number}.0/24") for number in range(256))
    driver.run(CreatePool(ORIGIN, definition("p", ranges)))
    driver.close()
    renew(tmp_path, "new", WALL_MS)
    driver.open()
    with driver.state.snapshot() as state:
        asked: list[str] = []
        state.connection.set_trace_callback(asked.append)
        listed = [parse_address(f"10.0.{number}.{host}") for number in range(256) for host in (7, 8)]
        lines = (Listed("k", f"c{at}", "eth0", None, f"t/{at}", (one,)) for at, one in enumerate(listed))
        claims = claims_of(state, Inventory("n1", "b1", 1, tuple(lines)))
        state.connection.set_trace_callback(None)
    assert [one.addresses[0] for one in claims.living] == listed
    assert sum("unconfirmed" in one for one in asked) == 1
    asked.clear()
    driver.connection.set_trace_callback(asked.append)
    driver.run(ClaimLiving(ORIGIN, "n1", claims.living))
    driver.connection.set_trace_callback(None)
    assert driver.rows("SELECT count(*) FROM addresses") == [(512,)]
    assert sum("unconfirmed" in one for one in asked) < 10
    driver.close()


def test_a_history_says_on_which_node_a_pod_had_its_address_that_a_restore_found_elsewhere(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    driver.run(Found(ORIGIN, "old", Settings(), MEMBERS))
    driver.run(CreatePool(ORIGIN, definition("p", "192.0.2.0/24")))
    driver.run(add("t/a"))
    driver.close()
    renew(tmp_path, "new", WALL_MS)
    driver.open()
    driver.log_ms += 60_000
    address = parse_address("192.0.2.1")
    driver.run(ClaimLiving(ORIGIN, "n2", (Living("t/a", "eth0", "c2", (address,), "k"),)))
    with driver.state.snapshot() as state:
        found = state.history("default", address, None, 10)
        assert [(row.pod_ref, row.node, row.to_ms is None) for row in found] == [
            ("t/a", "n2", True),
            ("t/a", "n1", False),
        ]
        before = state.holding_at("default", address, found[0].from_ms - 1)
        assert before is not None
        assert before.node == "n1"
    driver.close()
