"""What a server exposes is what it did, and what its API says of the state."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from dataclasses import replace

import pytest

from ipamd.core.figures import Histogram
from ipamd.core.model import Role
from ipamd.core.ports import Snapshot, Unavailable
from ipamd.metrics import ServerMetrics, Watched, state
from ipamd.metrics.exposition import Sample, text_of
from ipamd.metrics.state import StateMetrics
from ipamd.service.backups import Backups, Schedule
from ipamd.storage.backups import BackupFiles
from ipamd.storage.database import FILE_NAME as DATABASE_FILE
from tests.support.eventually import PATIENCE_S, until
from tests.support.metrics import Scrape
from tests.support.scripted import TurnedClock
from tests.support.stack import SECRET, Stack, conf, running

ADD = {"CNI_Args": "K8S_POD_NAMESPACE=d;K8S_POD_NAME=a"}


async def scrape(stack: Stack) -> Scrape:
    got = await stack.ask("GET", "/metrics")
    assert got.status == 200
    assert got.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Scrape(got.raw)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A scrape gets the new reading however busy the machine is."""
    monkeypatch.setattr(state, "_WAIT_S", PATIENCE_S)


@pytest.fixture
async def stack(tmp_path):
    async with running(tmp_path) as started:
        yield started


async def test_a_pool_is_as_its_usage_says(stack):
    await stack.pool("four", "192.0.2.0/28", hold_s=-1)
    await stack.pool("six", "fd00::/64")
    for name in "abc":
        body = {"pool": "four", "pod_ref": f"d/{name}", "container_id": name, "node": "w1"}
        assert (await stack.ask("POST", "/v1/reservations", body)).status == 201
    await stack.ask("DELETE", "/v1/reservations/four/d%2Fa?force=true")
    await stack.ask("POST", "/v1/addresses/192.0.2.9/quarantine", {"note": "a printer"})
    seen = await scrape(stack)
    for pool, family in (("four", "ipv4"), ("six", "ipv6")):
        usage = (await stack.ask("GET", f"/v1/pools/{pool}/usage")).json[family]
        labels = {"pool": pool, "family": family, "space": "default"}
        assert seen.value("ipamd_pool_usable_addresses", **labels) == float(usage["total"])
        lines = seen.all("ipamd_pool_addresses", **labels)
        assert {line.labels["state"]: line.value for line in lines} == {
            one: float(usage[one])
            for one in ("bound", "held", "cooling", "quarantined", "withheld", "elsewhere", "free")
        }
        assert sum(line.value for line in lines) == pytest.approx(float(usage["total"]), rel=1e-15)
        for doubt in ("suspect", "lost"):
            assert seen.value("ipamd_pool_doubtful_addresses", **labels, doubt=doubt) == usage[doubt]
    assert seen.value("ipamd_pools") == 2
    assert seen.value("ipamd_events_last_index") > seen.value("ipamd_events_oldest_index") > 0


async def test_calls_are_counted_by_verb_and_code_and_requests_by_route_and_status(stack):
    await stack.pool("p")
    before = await scrape(stack)
    assert before.value("ipamd_cni_calls_total", verb="add", code="110") == 0
    assert (await stack.cni("add", conf(), **ADD)).status == 200
    assert (await stack.cni("add", conf("nowhere"))).status == 400
    assert (await stack.cni("del", conf())).status == 200
    await stack.ask("GET", "/v1/pools/nowhere")
    await stack.ask("GET", "/strange/1")
    await stack.ask("PROPFIND", "/strange/2")
    seen = await scrape(stack)
    calls = {(line.labels["verb"], line.labels["code"]): line.value for line in seen.all("ipamd_cni_calls_total")}
    assert {key: count for key, count in calls.items() if count} == {("add", "0"): 1, ("add", "7"): 1, ("del", "0"): 1}
    assert seen.value("ipamd_cni_call_duration_seconds_count", verb="add") == 2
    assert 0 < seen.value("ipamd_cni_call_duration_seconds_sum", verb="add") < 10
    count = "ipamd_http_requests_total"
    assert seen.value(count, method="GET", route="/v1/pools/{pool}", status="404") == 1
    assert seen.value(count, method="GET", route="other", status="404") == 1
    assert seen.value(count, method="other", route="other", status="404") == 1
    assert seen.value(count, method="GET", route="/metrics", status="200") == 1


async def test_every_stage_of_a_write_is_measured(stack):
    await stack.pool("p")
    before = await scrape(stack)
    for number in range(5):
        assert (await stack.cni("add", conf(), CNI_ContainerID=f"c{number}")).status == 200
    after = await scrape(stack)
    for stage in ("queue", "log", "apply", "answer"):
        name = "ipamd_log_stage_duration_seconds"
        grown = [seen.value(f"{name}_count", stage=stage) for seen in (before, after)]
        assert grown[1] - grown[0] >= 5
        assert 0 < after.value(f"{name}_sum", stage=stage) < 60
    assert after.value("ipamd_log_entry_commands_sum") - before.value("ipamd_log_entry_commands_sum") == 5
    assert after.value("ipamd_journal_sync_duration_seconds_count") >= 5
    assert (
        after.value("ipamd_raft_is_leader") == after.value("ipamd_raft_has_leader") == after.value("ipamd_ready") == 1
    )
    assert after.value("ipamd_raft_applied_index") > before.value("ipamd_raft_applied_index")
    assert after.value("process_resident_memory_bytes") > 1 << 20
    assert after.all("ipamd_member_info")[0].labels == {"cluster_id": "cluster-1", "member": "n1", "node": "node-1"}


async def test_a_reader_may_scrape_and_a_node_may_not(stack):
    secrets = {"admin": SECRET}
    for role, more in (("reader", {}), ("node", {"node": "w1"})):
        made = await stack.ask("POST", "/v1/tokens", {"name": role, "role": role, **more})
        secrets[role] = made.json["secret"]
    statuses = {role: (await stack.ask_tcp("GET", "/metrics", token=secret)).status for role, secret in secrets.items()}
    assert statuses == {"admin": 200, "reader": 200, "node": 403}
    assert (await stack.ask_tcp("GET", "/metrics", token=None)).status == 401
    seen = await scrape(stack)
    assert seen.value("ipamd_requests_refused_total", code="unauthorized") == 1
    assert seen.value("ipamd_requests_refused_total", code="forbidden") == 1
    assert Role.READER in secrets


async def test_scrapes_share_a_reading(stack, monkeypatch):
    await stack.pool("p")
    readings = 0
    overview = state._overview

    def counted(snapshot):
        nonlocal readings
        readings += 1
        return overview(snapshot)

    monkeypatch.setattr(state, "_overview", counted)
    monkeypatch.setattr(state, "FRESH_S", 600.0)
    scrapes = await asyncio.gather(*(scrape(stack) for _ in range(20)))
    assert (await scrape(stack)).value("ipamd_pools") == 1
    assert readings == 1
    assert {seen.value("ipamd_pools") for seen in scrapes} == {1}


@pytest.mark.parametrize(("took_s", "kept_s"), [(0.0, 5.0), (2.0, 40.0)])
async def test_a_reading_is_kept_the_longer_the_longer_it_took(stack, monkeypatch, took_s, kept_s):
    clock, readings = TurnedClock(), []
    overview = state._overview

    def slow(snapshot):
        readings.append(clock.monotonic_s())
        clock.now_s += took_s
        return overview(snapshot)

    monkeypatch.setattr(state, "_overview", slow)
    metrics = StateMetrics(stack.services.reader, clock)
    seen = Scrape(await metrics.text())
    assert seen.value("ipamd_state_read_seconds") == took_s
    clock.now_s += kept_s - 0.01
    assert await metrics.text() == await metrics.text()
    assert len(readings) == 1
    clock.now_s += 0.01 + 1e-6
    await metrics.text()
    assert len(readings) == 2


def hold_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Have every reading wait until this is set."""
    overview, go_on = state._overview, threading.Event()

    def held_up(snapshot: Snapshot) -> state._Overview:
        go_on.wait(60)
        return overview(snapshot)

    monkeypatch.setattr(state, "_overview", held_up)
    return go_on


async def test_a_first_scrape_waits_longer_and_later_ones_get_the_last_reading(stack, monkeypatch):
    monkeypatch.setattr(state, "_WAIT_S", 0.05)
    monkeypatch.setattr(state, "FIRST_S", 60.0)
    monkeypatch.setattr(state, "FRESH_S", 0.0)
    monkeypatch.setattr(state, "SPARED", 0)
    go_on = hold_up(monkeypatch)
    metrics = StateMetrics(stack.services.reader, stack.services.clock)
    asyncio.get_running_loop().call_later(0.5, go_on.set)
    first = await metrics.text()
    assert Scrape(first).value("ipamd_pools") == 0
    go_on.clear()
    assert await metrics.text() == first, "the next reading is not there yet"
    go_on.set()
    await metrics.stop()


async def test_a_first_reading_that_takes_too_long_is_there_for_a_later_scrape(stack, monkeypatch):
    monkeypatch.setattr(state, "FIRST_S", 0.05)
    go_on = hold_up(monkeypatch)
    metrics = StateMetrics(stack.services.reader, stack.services.clock)
    assert await metrics.text() == b""
    go_on.set()
    monkeypatch.setattr(state, "FIRST_S", 60.0)
    assert Scrape(await metrics.text()).value("ipamd_pools") == 0


async def test_what_cannot_be_read_leaves_the_last_reading_and_everything_else(stack, monkeypatch, caplog):
    monkeypatch.setattr(state, "FRESH_S", 0.0)
    monkeypatch.setattr(state, "SPARED", 0)
    await stack.pool("p")
    assert (await scrape(stack)).value("ipamd_pools") == 1

    async def no_time(look, timeout_s):
        raise Unavailable("the time for this request ran out before it could be read", "none")

    monkeypatch.setattr(stack.services.reader, "peek", no_time)
    seen = await scrape(stack)
    assert (seen.value("ipamd_pools"), seen.value("ipamd_raft_has_leader")) == (1, 1)
    assert [one.getMessage() for one in caplog.records if one.levelname == "WARNING"] == [
        "the state could not be read for its metrics: the time for this request ran out before it could be read"
    ]


async def test_no_more_pools_are_counted_than_there_is_room_for(stack):
    for number in range(103):
        await stack.pool(f"p{number:03}", f"10.0.{number}.0/24")
    metrics = StateMetrics(stack.services.reader, stack.services.clock, most_pools=101)
    seen = Scrape(await metrics.text())
    assert seen.value("ipamd_pools") == 103
    assert [line.labels["pool"] for line in seen.all("ipamd_pool_usable_addresses")] == [
        f"p{number:03}" for number in range(101)
    ]


async def test_scheduled_backups_are_told_of(stack, tmp_path):
    schedule = Schedule(tmp_path / "backups", 60.0, 2)
    backups = Backups(
        BackupFiles(tmp_path / DATABASE_FILE),
        stack.services.reader,
        stack.services.clock,
        scratch=tmp_path / "scratch",
        schedule=schedule,
        cluster_id=lambda: "cluster-1",
    )
    services = replace(stack.services, backups=backups)
    metrics = ServerMetrics(services, Watched(services.log, "0", is_halted=lambda: False, differs=lambda: False))
    seen = Scrape(await metrics.exposed())
    assert seen.value("ipamd_backup_last_timestamp_seconds") == seen.value("ipamd_backup_size_bytes") == 0
    made = await backups.keep(schedule)
    seen = Scrape(await metrics.exposed())
    assert time.time() - 60 < seen.value("ipamd_backup_last_timestamp_seconds") <= time.time()
    assert seen.value("ipamd_backup_size_bytes") == made.size_bytes > 0
    assert seen.value("ipamd_backups_failed_total") == 0
    assert not (await scrape(stack)).all("ipamd_backup_size_bytes")


@pytest.mark.needs_promtool
async def test_promtool_reads_it(stack):
    await stack.pool("p")
    text = (await stack.ask("GET", "/metrics")).raw
    done = await asyncio.to_thread(
        subprocess.run, ["promtool", "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b""), done.stdout


def test_a_value_counts_in_its_bucket_and_in_all_above():
    histogram = Histogram((1, 2, 5))
    for value in (0.5, 1, 1.5, 2, 4.9, 6):
        histogram.note(value)
    seen = Scrape(text_of([Sample("ipamd_log_entry_commands", histogram)]))
    buckets = {line.labels["le"]: line.value for line in seen.all("ipamd_log_entry_commands_bucket")}
    assert buckets == {"1": 2, "2": 4, "5": 5, "+Inf": 6}
    assert seen.value("ipamd_log_entry_commands_count") == 6
    assert seen.value("ipamd_log_entry_commands_sum") == pytest.approx(15.9)


def test_what_is_not_in_the_table_is_not_exposed():
    with pytest.raises(KeyError):
        text_of([Sample("ipamd_nonsense", 1)])


def test_labels_cannot_break_a_line():
    labels = ('a"b\\c\nd', "default", "ipv4")
    seen = Scrape(text_of([Sample("ipamd_pool_usable_addresses", 1, labels)]))
    assert [line.labels["pool"] for line in seen.lines] == ['a"b\\c\nd']


async def test_who_follows_the_events_is_counted(stack):
    following = await stack.over_socket.get("http://node/v1/events", headers={"Accept": "text/event-stream"})
    assert (await scrape(stack)).value("ipamd_event_streams") == 1
    following.close()
    await until(lambda: not stack.services.feed.following)
    assert (await scrape(stack)).value("ipamd_event_streams") == 0
