"""A disk that runs full under one member (row D02), and one whose syncs fail: the others serve on, nothing is lost."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO

import pytest

from tests.support.cluster import Away, Cluster, Got, MemberServer, owned_twice
from tests.support.disks import Disk
from tests.support.server import STOP_S

DISK_MIB = 64
SYNC_FAILS = "Input/output error"


class Small:
    """Three members, of which n3 has a disk of 64 MB."""

    def __init__(self, cluster: Cluster, disk: Disk) -> None:
        self.cluster, self.disk = cluster, disk
        self.acknowledged: dict[str, str] = {}
        self._numbers = count()

    @property
    def ballast(self) -> Path:
        """What else lies on the disk, and can be deleted."""
        return self.disk.place / "ballast"

    def fill(self) -> None:
        """Leave no room at all."""
        with self.ballast.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                with pytest.raises(OSError, match="No space left"):
                    _write_on(file, size)

    def work(self, member: MemberServer, calls: int = 32) -> list[Got]:
        """ADDs through a member, of which every fourth pod goes again; the answers to the ADDs."""
        with ThreadPoolExecutor(8) as callers:
            return list(callers.map(lambda _: self._one(member), range(calls)))

    def _one(self, member: MemberServer) -> Got:
        number = next(self._numbers)
        pod, container = f"t/{number}", f"c{number}"
        got = member.add(container, pod, timeout_s=10)
        if got.code == 0 and number % 4 == 0:
            gone = member.cni("del", container, pod, timeout_s=10)
            if gone.status != 200:
                assert gone.code == 11, gone.body
        elif got.code == 0:
            self.acknowledged[pod] = got.address
        return got

    def settled(self) -> None:
        """All have the same, with everything that was acknowledged in it, and nothing twice."""
        listed = self.cluster.level()
        held = {pod: address.split("/")[0] for address, pod, _, _ in listed}
        assert self.acknowledged.items() <= held.items()
        assert owned_twice(listed) == []


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    """The three, and the small disk of n3."""
    with ExitStack() as stack:
        disk = stack.enter_context(Disk(tmp_path / "n3" / "data", DISK_MIB))
        cluster = stack.enter_context(Cluster(tmp_path))
        cluster.pool()
        yield Small(cluster, disk)


@pytest.mark.needs_disks
@pytest.mark.parametrize("leads", [False, True], ids=["a follower's", "the leader's"])
def test_d02_a_full_disk_takes_one_member_out_and_none_of_the_others(small: Small, *, leads: bool) -> None:
    full, others = small.cluster["n3"], [small.cluster["n1"], small.cluster["n2"]]
    assert small.cluster.ctl("cluster", "transfer", "n3" if leads else "n1").returncode == 0
    small.cluster.leader()
    small.work(full)
    small.fill()
    _until(lambda: _works_until_unready(small, full), 60, full)
    assert {got.code for got in small.work(others[0])} == {0}
    assert {got.code for got in small.work(others[1])} == {0}
    assert {got.code for got in small.work(full, 8)} <= {0, 11}
    read = full.ask("GET", "/v1/reservations?limit=5000", timeout_s=2)
    held = {item["pod_ref"] for item in read.json["items"]} if read.status == 200 else None
    assert held is None or small.acknowledged.keys() <= held
    assert full.is_running
    assert not full.is_ready()
    assert "no room" in full.log or "no space" in full.log
    small.ballast.unlink()
    full.wait_ready()
    assert {got.code for got in small.work(full)} == {0}
    assert full.stop() == 0
    assert {got.code for got in small.work(others[0])} == {0}
    full.start()
    small.settled()


def _write_on(file: IO[bytes], size: int) -> None:
    while True:
        file.write(bytes(size))


def _works_until_unready(small: Small, full: MemberServer) -> bool:
    """Whether n3 says that it is not ready; some more calls, through the others, if it does not."""
    small.work(small.cluster["n1"], 64)
    return not full.is_ready()


@pytest.mark.needs_strace
@pytest.mark.parametrize("leads", [False, True], ids=["a follower's", "the leader's"])
def test_a_failed_sync_stops_the_member_with_a_sentence(three: Cluster, pool: str, *, leads: bool) -> None:
    victim = three.leader() if leads else three.followers()[0]
    other = next(member for member in three if member is not victim)
    given = {f"t/{number}": victim.add(f"c{number}", f"t/{number}", pool=pool).address for number in range(5)}
    with failing_syncs(victim):
        with suppress(Away):
            got = victim.add("cx", "t/x", pool=pool, timeout_s=8)
            given |= {"t/x": got.address} if got.code == 0 else {}
        assert victim.process is not None
        assert victim.process.wait(STOP_S) == 70
    assert SYNC_FAILS in victim.log
    again = other.add("cy", "t/y", pool=pool)
    assert again.code == 0, again.body
    victim.start()
    listed = three.level(pool)
    held = {pod: address.split("/")[0] for address, pod, _, _ in listed}
    assert (given | {"t/y": again.address}).items() <= held.items()
    assert owned_twice(listed) == []


@contextmanager
def failing_syncs(member: MemberServer) -> Iterator[None]:
    """From now on every fdatasync and fsync of a running member fails."""
    command = ["strace", "-f", "-qq", "-o", str(member.directory / "syncs"), "-p", str(member.pid)]
    calls = "fsync,fdatasync"
    with subprocess.Popen([*command, "-e", f"trace={calls}", "-e", f"inject={calls}:error=EIO"]) as tracer:
        try:
            _until(lambda: _is_traced_or_gone(member), 60, member)
            yield
        finally:
            tracer.terminate()


def _is_traced_or_gone(member: MemberServer) -> bool:
    """Whether somebody traces all its threads; or its first failed sync has ended it already."""
    if not member.is_running:
        return True
    tasks = Path(f"/proc/{member.pid}/task").glob("*/status")
    with suppress(OSError):  # a thread ended while it was looked at
        return all("TracerPid:\t0\n" not in status.read_text() for status in tasks)
    return False


def _until(done: Callable[[], bool], timeout_s: float, member: MemberServer) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, member.log[-3000:]
        time.sleep(0.05)
