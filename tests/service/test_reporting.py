"""What a node tells of itself, and when: it is heard whatever waits, and looks at what it was told before it looked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ipamd.core.inventory import Inventory
from ipamd.core.ports import Unavailable
from ipamd.service.nodes import Conflict
from ipamd.service.reporting import Known, Reporting
from ipamd.service.sandboxes import Sandbox, Sandboxes
from ipamd.system import Namespaces, SystemClock
from tests.support.eventually import until
from tests.support.scripted import TurnedClock

AWAY = Unavailable("no server is there", "none")
MINE = Sandbox("k", "c1", "eth0", "/run/netns/nothing-is-here", 7, "t/a")
LOST = Conflict("p", "t/b", "eth0", "192.0.2.1")


class Cluster:
    """What a node reaches, and what it said there, in order."""

    def __init__(self) -> None:
        self.told = Known("w1", 9, "x1", (MINE,), ("b1",))
        self.said: list[str] = []
        self.inventories: list[Inventory] = []
        self.conflicts: Sequence[Conflict] = ()
        self.failure: Exception | None = None
        self.failed = 0

    async def known(self, deadline_s: float) -> Known:
        self._say("known", deadline_s)
        return self.told

    async def report(self, inventory: Inventory, cluster_id: str | None, deadline_s: float) -> Sequence[Conflict]:
        self._say(f"report for {cluster_id}", deadline_s)
        self.inventories.append(inventory)
        return self.conflicts

    async def heartbeat(self, deadline_s: float) -> None:
        self._say("heartbeat", deadline_s)

    def _say(self, what: str, _deadline_s: float) -> None:
        if self.failure is not None:
            self.failed += 1
            raise self.failure
        self.said.append(what)


class Spool:
    """DELs that wait: for so many reports."""

    def __init__(self, waits: int = 0) -> None:
        self.waits = waits

    async def clear(self, _deadline_s: float) -> None:
        if self.waits:
            self.waits -= 1
            raise Unavailable("a DEL waits to be delivered before this", "none")


def build(cluster: Cluster, spool: Spool | None = None, boot_id: str | None = "b1", every_s: float = 30.0) -> Reporting:
    return Reporting(
        cluster,
        Sandboxes(Namespaces()),
        SystemClock() if every_s < 1 else TurnedClock(),
        boot_id=boot_id,
        spooled=lambda: 3,
        in_order=(spool or Spool()).clear,
        heartbeat_every_s=every_s / 3,
        report_every_s=every_s,
    )


async def test_what_was_found_goes_with_the_index_that_was_known_before() -> None:
    cluster = Cluster()
    await build(cluster).report()
    assert cluster.said == ["known", "report for x1"]
    (inventory,) = cluster.inventories
    assert (inventory.node, inventory.boot_id, inventory.index, inventory.spooled) == ("w1", "b1", 9, 3)
    assert [(one.container_id, one.alive) for one in inventory.listed] == [("c1", None)]


async def test_a_node_whose_dels_wait_is_there_all_the_same() -> None:
    """A hundred thousand of them take minutes: it must not be lost meanwhile, nor may it report before them."""
    cluster, spool = Cluster(), Spool(waits=2)
    reporting = build(cluster, spool)
    for _ in range(2):
        with pytest.raises(Unavailable, match="a DEL waits"):
            await reporting.report()
    assert cluster.said == ["heartbeat", "heartbeat"]
    await reporting.report()
    assert cluster.said[2:] == ["known", "report for x1"]


async def test_who_finds_nobody_at_first_reports_as_soon_as_there_is_somebody_and_goes_on() -> None:
    cluster = Cluster()
    cluster.failure = AWAY
    reporting = build(cluster, every_s=0.3)
    reporting.start()
    await until(lambda: cluster.failed)
    cluster.failure = None
    await until(lambda: cluster.said.count("known") >= 2 and "heartbeat" in cluster.said)
    await reporting.stop()
    assert cluster.said[:2] == ["known", "report for x1"]


async def test_who_was_away_reports_before_anything_else() -> None:
    cluster = Cluster()
    reporting = build(cluster, every_s=0.3)
    reporting._report_every_s = 600.0  # no report is due
    reporting.start()
    await until(lambda: "heartbeat" in cluster.said)
    cluster.failure = AWAY
    await until(lambda: cluster.failed)
    before, cluster.failure = len(cluster.said), None
    await until(lambda: len(cluster.said) >= before + 2)
    await reporting.stop()
    assert cluster.said[before : before + 2] == ["known", "report for x1"]


async def test_a_boot_that_others_overtook_is_reported_from_once_no_call_tells_better() -> None:
    cluster = Cluster()
    cluster.told = replace(cluster.told, boots=("b1", "b2"))
    reporting = build(cluster)
    await reporting.report()
    assert cluster.said == ["known", "heartbeat"]
    await reporting.report()
    assert [one.boot_id for one in cluster.inventories] == ["b1"]


async def test_the_boot_that_plugins_say_is_the_one() -> None:
    cluster = Cluster()
    reporting = build(cluster)
    reporting._sandboxes.boot_id = "b7"
    await reporting.report()
    assert [one.boot_id for one in cluster.inventories] == ["b7"]


async def test_without_any_boot_id_a_node_is_only_there() -> None:
    cluster = Cluster()
    await build(cluster, boot_id=None).report()
    assert cluster.said == ["known", "heartbeat"]


async def test_each_conflict_is_an_error_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    reporting = build(cluster)
    for conflicts in ((LOST,), (LOST,), (LOST, Conflict(None, None, None, "192.0.2.2")), ()):
        cluster.conflicts = conflicts
        await reporting.report()
        assert reporting.conflicts == conflicts
    errors = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert errors == [
        "conflict: a container here still uses 192.0.2.1, which was given to eth0 of t/b in pool p",
        "conflict: a container here still uses 192.0.2.2, which was given to nobody yet, but may be any time",
    ]


async def test_that_it_cannot_report_is_said_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    cluster = Cluster()
    reporting = build(cluster)
    for failure in (AWAY, AWAY, None, None):
        cluster.failure = failure
        await reporting._try(reporting.report)
    assert [one.getMessage() for one in caplog.records] == [
        "this node cannot report: no server is there",
        "this node reports again",
    ]
