"""DELs that the cluster cannot take: put aside in time, delivered in order, and everything else behind them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from ipamd.core.commands import CallStart
from ipamd.core.ports import Unavailable
from ipamd.core.spooled import SpooledCall
from ipamd.errors import ApiError
from ipamd.service import spooling
from ipamd.service.spooling import Faulty, Spooling, Undeliverable
from ipamd.spool import DirectorySpool
from ipamd.system import SystemClock
from tests.support.eventually import PATIENCE_S, until
from tests.support.stopwatch import Stopwatch

AWAY = Unavailable("there is no leader at the moment", "none")
NOW = CallStart("boot-1", 77)


def call(name: str = "c1", **headers: str) -> SpooledCall:
    start = {"Ipamd-Boot-Id": "boot-0", "Ipamd-Started": "5"}
    return SpooledCall(name, 1, {"CNI-ContainerID": name, **start, **headers}, b"{}")


class Cluster:
    """Takes calls, or fails as told."""

    def __init__(self) -> None:
        self.failure: Exception | None = AWAY
        self.taken: list[SpooledCall] = []
        self.tries = 0

    async def deliver(self, spooled: SpooledCall, deadline_s: float) -> None:
        self.tries += 1
        assert deadline_s > time.monotonic()
        if self.failure is not None:
            raise self.failure
        self.taken.append(spooled)

    async def fail(self, _deadline_s: float) -> int:
        raise AWAY


Make = Callable[..., Awaitable[Spooling]]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def make(tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    monkeypatch.setattr(spooling, "_PAUSE_S", (0.01,))
    made: list[tuple[Spooling, DirectorySpool]] = []

    async def end() -> None:
        while made:
            one, spool = made.pop()
            await one.stop()
            await spool.close()

    async def build(*, is_on: bool = True, most: int = 100) -> Spooling:
        """A spool on the one directory; who had it before ends first."""
        await end()
        spool = DirectorySpool(tmp_path / "spool", most)
        one = Spooling(spool, cluster.deliver, clock=SystemClock(), now=lambda: NOW, is_on=is_on)
        made.append((one, spool))
        return one

    yield build
    await end()


def soon() -> float:
    return time.monotonic() + 60


async def delivered(one: Spooling) -> None:
    await until(lambda: not one.length)


async def test_what_the_cluster_takes_is_not_put_aside(make: Make) -> None:
    one = await make()

    async def attempt(deadline_s: float) -> int:
        assert deadline_s - time.monotonic() <= spooling.PATIENCE_S
        return 7

    assert await one.take(call(), attempt, soon()) == 7
    assert one.length == 0


async def test_what_nobody_takes_is_put_aside_and_delivered_later(make: Make, cluster: Cluster) -> None:
    one = await make()
    one.start()
    assert await one.take(call("a"), cluster.fail, soon()) is None
    assert one.length == 1
    cluster.failure = None
    await delivered(one)
    assert [taken.request_id for taken in cluster.taken] == ["a"]
    assert cluster.taken[0].headers["Ipamd-Started"] == "5"


async def test_an_attempt_without_end_is_cut_off(make: Make) -> None:
    one = await make()

    async def hang(_deadline_s: float) -> int:
        await asyncio.sleep(600)
        return 1

    watch = Stopwatch()
    assert await one.take(call(), hang, soon()) is None
    assert watch.spent_s() < 1


@pytest.mark.parametrize("code", ["unauthorized", "forbidden", "too_many_requests", "internal"])
async def test_refusals_of_the_moment_are_put_aside(make: Make, code: str) -> None:
    one = await make()

    async def attempt(_deadline_s: float) -> int:
        raise ApiError(code, "not now")

    assert await one.take(call(), attempt, soon()) is None


async def test_a_server_that_is_the_whole_cluster_has_more_time(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks after its DEL finds it done, however busy the machine was."""
    monkeypatch.setattr(spooling, "PATIENCE_S", 0.05)
    monkeypatch.setattr(spooling, "ALONE_PATIENCE_S", 60.0)
    one = await make()
    one._is_alone = lambda: True

    async def slow(deadline_s: float) -> int:
        assert deadline_s - time.monotonic() > spooling.PATIENCE_S
        await asyncio.sleep(0.3)
        return 7

    assert await one.take(call(), slow, soon()) == 7
    one._is_alone = lambda: False

    async def slower(_deadline_s: float) -> int:
        await asyncio.sleep(600)
        return 7

    assert await one.take(call(), slower, soon()) is None


async def test_a_definite_refusal_is_none_of_the_spools_business(make: Make) -> None:
    one = await make()

    async def attempt(_deadline_s: float) -> int:
        raise ApiError("invalid_request", "never")

    with pytest.raises(ApiError):
        await one.take(call(), attempt, soon())
    assert one.length == 0


async def test_without_a_spool_the_attempt_has_all_the_time(make: Make) -> None:
    one = await make(is_on=False)

    async def attempt(deadline_s: float) -> int:
        assert deadline_s - time.monotonic() > 30
        raise AWAY

    with pytest.raises(Unavailable):
        await one.take(call(), attempt, soon())
    assert one.length == 0


async def test_a_full_spool_says_so(make: Make, cluster: Cluster) -> None:
    one = await make(most=1)
    await one.take(call(), cluster.fail, soon())
    with pytest.raises(Unavailable, match=r"no leader at the moment; and 1 calls wait in the spool"):
        await one.take(call(), cluster.fail, soon())


async def test_a_call_without_a_start_gets_that_of_its_arrival(make: Make, cluster: Cluster) -> None:
    one = await make()
    one.start()
    bare = SpooledCall("a", 1, {"CNI-ContainerID": "a"}, b"{}")
    await one.take(bare, cluster.fail, soon())
    cluster.failure = None
    await delivered(one)
    assert cluster.taken[0].headers == {"CNI-ContainerID": "a", "Ipamd-Boot-Id": "boot-1", "Ipamd-Started": "77"}


async def test_delivery_is_in_order_and_survives_a_restart(make: Make, cluster: Cluster) -> None:
    names = [f"c{number}" for number in range(30)]
    first = await make()
    for name in names:
        await first.take(call(name), cluster.fail, soon())
    cluster.failure = None
    second = await make()
    assert second.length == 30
    second.start()
    await delivered(second)
    assert [taken.request_id for taken in cluster.taken] == names


async def test_others_wait_until_what_was_before_them_is_delivered(make: Make, cluster: Cluster) -> None:
    one = await make()
    one.start()
    await one.clear(soon())
    for name in "ab":
        await one.take(call(name), cluster.fail, soon())
    waiting = asyncio.create_task(one.clear(soon()))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    cluster.failure = None
    await waiting
    assert {"a", "b"} <= {taken.request_id for taken in cluster.taken}


async def test_who_cannot_wait_is_told_for_what(make: Make, cluster: Cluster) -> None:
    one = await make()
    one.start()
    await one.take(call(), cluster.fail, soon())
    await until(lambda: cluster.tries > 1)  # of the first try it is known why it was in vain
    with pytest.raises(Unavailable, match="a DEL waits to be delivered before this: there is no leader"):
        await one.clear(time.monotonic() + 0.2)


async def test_a_refused_call_blocks_nothing(make: Make, cluster: Cluster, tmp_path: Path) -> None:
    one = await make()
    for name in "ab":
        await one.take(call(name), cluster.fail, soon())

    async def deliver(spooled: SpooledCall, _deadline_s: float) -> None:
        if spooled.request_id == "a":
            raise Undeliverable("no such thing")
        cluster.taken.append(spooled)

    one._deliver = deliver
    one.start()
    await delivered(one)
    assert [taken.request_id for taken in cluster.taken] == ["b"]
    assert (tmp_path / "spool" / "refused" / "0000000000000001.why").read_text() == "no such thing\n"


async def test_a_damaged_file_blocks_nothing(make: Make, cluster: Cluster, tmp_path: Path) -> None:
    one = await make()
    for name in "ab":
        await one.take(call(name), cluster.fail, soon())
    (tmp_path / "spool" / "0000000000000001.del").write_bytes(b"rubbish")
    cluster.failure = None
    one.start()
    await delivered(one)
    assert [taken.request_id for taken in cluster.taken] == ["b"]
    assert (tmp_path / "spool" / "refused" / "0000000000000001.del").read_bytes() == b"rubbish"


async def test_a_call_that_servers_fail_over_is_given_up_at_last(make: Make, cluster: Cluster, tmp_path: Path) -> None:
    one = await make()
    await one.take(call("a"), cluster.fail, soon())
    cluster.failure = Faulty("a mistake", "unknown")
    one.start()
    await delivered(one)
    assert cluster.tries == 10
    assert "the servers fail over it: a mistake" in (tmp_path / "spool/refused/0000000000000001.why").read_text()


async def test_many_at_once_share_the_syncs(make: Make, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    one = await make()
    folder = one._spool._folder  # type: ignore[attr-defined]
    batches: list[int] = []
    real = folder.put

    def put(calls: list[SpooledCall]) -> object:
        batches.append(len(calls))
        return real(calls)

    monkeypatch.setattr(folder, "put", put)
    takes: list[Awaitable[int | None]] = [one.take(call(f"c{n}"), cluster.fail, soon()) for n in range(40)]
    await asyncio.gather(*takes)
    assert one.length == sum(batches) == 40
    assert len(batches) < 10


async def test_a_file_that_cannot_be_read_blocks_nothing_for_long(make: Make, cluster: Cluster, tmp_path: Path) -> None:
    one = await make()
    for name in "ab":
        await one.take(call(name), cluster.fail, soon())
    broken = tmp_path / "spool" / "0000000000000001.del"
    broken.unlink()
    broken.mkdir()  # what a read fails on, whoever reads
    cluster.failure = None
    one.start()
    await delivered(one)
    assert [taken.request_id for taken in cluster.taken] == ["b"]
    assert "its file cannot be read" in (tmp_path / "spool/refused/0000000000000001.why").read_text()


async def test_where_many_wait_some_are_under_way_at_once_and_all_arrive(make: Make, cluster: Cluster) -> None:
    groups = 2
    names = [f"c{number}" for number in range(1 + groups * spooling.AT_ONCE + spooling.FEW)]
    in_groups = set(names[1 : -spooling.FEW])
    one = await make(most=len(names))
    await asyncio.gather(*(one.take(call(name), cluster.fail, soon()) for name in names))
    group = asyncio.Barrier(spooling.AT_ONCE)  # passed only where all of a group are under way at one time
    under_way: set[str] = set()
    most = {True: 0, False: 0}
    arrived: list[str] = []

    async def deliver(spooled: SpooledCall, _deadline_s: float) -> None:
        name = spooled.request_id
        under_way.add(name)
        most[name in in_groups] = max(most[name in in_groups], len(under_way))
        if name in in_groups:
            async with asyncio.timeout(PATIENCE_S):
                await group.wait()
        else:
            await asyncio.sleep(0)
        under_way.remove(name)
        arrived.append(name)

    one._deliver = deliver
    one.start()
    await delivered(one)
    assert sorted(arrived) == sorted(names)
    assert most == {True: spooling.AT_ONCE, False: 1}
    assert arrived[0] == names[0], "the first tries alone whether anybody takes it"
    assert arrived[-spooling.FEW :] == names[-spooling.FEW :], "the last are in order, one by one"


async def test_among_many_only_the_one_that_servers_fail_over_is_given_up(
    make: Make, cluster: Cluster, tmp_path: Path
) -> None:
    names = [f"c{number}" for number in range(2 * spooling.FEW)]
    one = await make(most=len(names))
    await asyncio.gather(*(one.take(call(name), cluster.fail, soon()) for name in names))
    tries = dict.fromkeys(names, 0)

    async def deliver(spooled: SpooledCall, _deadline_s: float) -> None:
        tries[spooled.request_id] += 1
        if spooled.request_id == "c20":
            raise Faulty("a mistake", "unknown")
        if tries[spooled.request_id] == 1 and spooled.request_id in ("c10", "c30"):
            raise AWAY

    one._deliver = deliver
    one.start()
    await delivered(one)
    assert tries["c20"] >= 10
    assert all(tries.values())
    assert [path.stem for path in (tmp_path / "spool/refused").glob("*.del")] == ["0000000000000021"]
