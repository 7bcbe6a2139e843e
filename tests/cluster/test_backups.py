"""Backups under load: each has all that was answered before it, and nothing that was given after it is given twice."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cluster.backups import NODES, POOL, Steady, index_of
from tests.kill.load import AT_ONCE
from tests.storage.driver import Driver
from tests.support.cluster import rounds
from tests.support.restores import run_restore
from tests.support.server import Server
from tests.support.wire import BOOT_ID, Reply, Wire, cni_conf, cni_headers, json_body

RATE = 500.0
SUBNET = "10.9.0.0/18"
PAUSE_ADDS = 150
"""So many pods come between two backups."""

PATIENCE_S = 120.0


async def test_backups_under_load_have_all_that_was_answered_before(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    with Server(first, *AT_ONCE).start() as server:
        wire = await Wire.connect(f"unix:{server.socket}")
        await ask(wire, "POST", "/v1/pools", {"name": POOL, "subnet": SUBNET, "cooldown_s": 0})
        for node in NODES:
            await report(wire, node, [])
        load = Steady(f"unix:{server.socket}", RATE, random.Random(7))
        began_s = time.monotonic()
        async with running(load):
            taken = [await take(wire, load, tmp_path / f"backup-{number}.db") for number in range(rounds(10, least=2))]
            await more(load, 2 * PAUSE_ADDS)
        rate = load.adds / (time.monotonic() - began_s)
        sys.stderr.write(f"{load.adds} ADDs, {rate:.0f} a second, {len(taken)} backups\n")
        wire.close()
        server.kill()
    for number, (file, index, answered) in enumerate(taken):
        new = tmp_path / f"new-{number}" / "data"
        new.parent.mkdir()
        done = run_restore(file, "--data-dir", new)
        assert done.exit_code == 0, done.output
        assert answered <= index, "what was answered before the backup was asked for is in it"
        recorded = recorded_in(new)
        expected = load.at(index)
        assert {pod: recorded.get(pod) for pod in expected} == expected
    await nothing_is_given_twice(tmp_path / "new-0", load)


async def nothing_is_given_twice(directory: Path, load: Steady) -> None:
    """A real server on what the first backup had, long after it: in whatever order they come."""
    living = {pod: one for pod, one in load.living().items() if one.address is not None}
    used = {str(one.address): pod for pod, one in living.items()}
    known = recorded_in(directory / "data")
    gone = [pod for pod in load.ended() if pod in known]
    reused = [pod for pod in gone if known[pod] in used]
    assert reused, "some address changed hands after the backup"
    with Server(directory, *AT_ONCE).start() as server:
        wire = await Wire.connect(f"unix:{server.socket}")
        for pod in [*(f"t/new{number}" for number in range(20)), *reused[:40], *gone[:40], *list(living)[:40]]:
            assert (await add(wire, pod, f"again-{pod[2:]}")).status != 200, "its node has not reported yet"
        for node in NODES:
            mine = {pod: one for pod, one in living.items() if load.node_of[pod] == node}
            await report(wire, node, [(one.container, pod, str(one.address)) for pod, one in mine.items()])
        for node in NODES:  # what one report gives free the next one claims
            mine = {pod: one for pod, one in living.items() if load.node_of[pod] == node}
            await report(wire, node, [(one.container, pod, str(one.address)) for pod, one in mine.items()])
        holders = await listed(wire)
        confirmed = (await ask(wire, "POST", f"/v1/pools/{POOL}/confirm?dry_run=true")).json()
        disputed = {one["address"]: one["pod_ref"] for one in confirmed["conflicts"]}
        for address, pod in used.items():
            assert holders.get(address) == pod or disputed.get(address) == pod
        for pod in [*reused[:40], *gone[:40], *(f"t/new{number}" for number in range(20))]:
            got = await add(wire, pod, f"once-more-{pod[2:]}")
            if got.status == 200:
                assert address_of(got) not in used, "another pod lives there"
        for pod, one in list(living.items())[:100]:
            got = await add(wire, pod, f"restarted-{pod[2:]}")
            assert got.status != 200 or address_of(got) == one.address
        wire.close()


@asynccontextmanager
async def running(load: Steady) -> AsyncIterator[None]:
    task = asyncio.create_task(load.run())
    try:
        yield
    finally:
        load.stop()
        await task


async def more(load: Steady, adds: int) -> None:
    """Let so many pods come."""
    enough = load.adds + adds
    async with asyncio.timeout(PATIENCE_S):
        while load.adds < enough:  # noqa: ASYNC110 - its clients count
            await asyncio.sleep(0.01)


async def take(wire: Wire, load: Steady, file: Path) -> tuple[Path, int, int]:
    """A backup, its index, and the highest index that was answered before it was asked for."""
    await more(load, PAUSE_ADDS)
    answered = max((done[-1].index for done in load.answered.values()), default=0)
    got = await wire.ask("GET", "/v1/backup")
    assert got.status == 200, got.body
    await asyncio.to_thread(file.write_bytes, got.body)
    return file, index_of(got.head), answered


def recorded_in(data_dir: Path) -> dict[str, str]:
    """The pods of a state with their addresses."""
    driver = Driver(data_dir)
    with driver.state.snapshot() as state:
        pool = state.pool(POOL)
        assert pool is not None
        found: dict[str, str] = {}
        for one in state.assigned_of_pool(pool.id):
            attachment = state.attachment_by_id(one.attachment_id)
            assert attachment is not None
            reservation = state.reservation_by_id(attachment.reservation_id)
            assert reservation is not None
            found[reservation.pod_ref] = str(one.address)
    driver.close()
    return found


async def ask(wire: Wire, method: str, path: str, body: object = None) -> Reply:
    data, headers = json_body(body) if body is not None else (b"", {})
    reply = await wire.ask(method, path, data, headers)
    assert reply.status < 300, reply.body
    return reply


async def add(wire: Wire, pod: str, container: str) -> Reply:
    headers = cni_headers(container, pod) | {"Ipamd-Node": "h1"}
    return await wire.ask("POST", "/cni/v1/add", cni_conf(POOL), headers)


def address_of(reply: Reply) -> str:
    address: str = reply.json()["ips"][0]["address"]
    return address.partition("/")[0]


async def report(wire: Wire, node: str, living: list[tuple[str, str, str]]) -> None:
    index = index_of((await ask(wire, "GET", "/v1/cluster")).head)
    lines = [
        {
            "cni_network": "net",
            "container_id": container,
            "ifname": "eth0",
            "alive": True,
            "pod_ref": pod,
            "addresses": [address],
        }
        for container, pod, address in living
    ]
    body = {"boot_id": BOOT_ID, "index": index, "attachments": lines}
    await ask(wire, "POST", f"/v1/nodes/{node}/inventory", body)


async def listed(wire: Wire) -> dict[str, str]:
    """All reservations: who holds an address."""
    found: dict[str, str] = {}
    cursor = ""
    while True:
        page = (await ask(wire, "GET", f"/v1/reservations?limit=5000{cursor}")).json()
        for one in page["items"]:
            for attachment in one["attachments"]:
                for address in attachment["addresses"]:
                    found[address.partition("/")[0]] = one["pod_ref"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"
