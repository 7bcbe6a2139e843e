"""Members that are killed, stopped, started in any order: the rows P03, P08, P10, K03c, W46 and P06."""

from __future__ import annotations

import json
import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import pytest

from ipamd.consensus.files import OsFiles
from ipamd.consensus.survey import survey
from ipamd.storage.doctor import position
from tests.support.cluster import Away, Cluster, Got, MemberServer, owned_twice, rounds
from tests.support.server import READY_S, ServerError
from tests.support.stopwatch import Stopwatch


@pytest.mark.timeout(300 + 60 * rounds(10, 2))
def test_p03_after_two_were_killed_there_is_one_leader_again(three: Cluster, pool: str) -> None:
    pairs = list(combinations(three, 2))
    for number in range(rounds(10, 2)):
        pair = pairs[number % len(pairs)]
        for member in pair:
            member.kill()
        time.sleep(5)
        for member in pair:
            member.spawn()
        for member in pair:
            _wait_until_it_listens(member)
        began = Stopwatch(*three)
        three.leader()
        assert began.spent_s() < 10
        got = three.any().add(f"c{number}", f"t/{number}", pool=pool)
        assert got.code == 0, got.body
    assert len(three.level(pool)) == rounds(10, 2)


@pytest.mark.timeout(300 + 60 * rounds(30))
def test_p08_what_was_acknowledged_survives_kills_of_all(three: Cluster, pool: str) -> None:
    chance = random.Random(8)
    acknowledged: dict[str, str] = {}
    for number in range(rounds(30)):
        acknowledged |= _add_ten(three, pool, number)
        for member in three:
            member.kill()
        first, *later = chance.sample([*three], 3)
        first.spawn()
        for member in later:
            time.sleep(chance.uniform(0, 3))
            member.spawn()
        for member in three:
            with suppress(Away):  # it may not listen yet
                got = member.add(f"after{number}", f"after/{number}-{member.name}", pool=pool)
                assert got.code in (0, 11), got.body
                if got.code == 0:
                    acknowledged[f"after/{number}-{member.name}"] = got.address
        three.revive()
    listed = three.level(pool)
    held = {pod: address.split("/")[0] for address, pod, _, _ in listed}
    assert acknowledged.items() <= held.items()
    assert owned_twice(listed) == []


def _add_ten(three: Cluster, pool: str, number: int) -> dict[str, str]:
    def add(one: int) -> tuple[str, Got]:
        pod = f"r{number}/{one}"
        return pod, three.any().add(f"r{number}c{one}", pod, pool=pool)

    with ThreadPoolExecutor(10) as callers:
        given = dict(callers.map(add, range(10)))
    assert all(got.code == 0 for got in given.values()), [got.body for got in given.values()]
    return {pod: got.address for pod, got in given.items()}


def test_p10_one_of_three_alone_serves_nothing_but_its_own_old_state(three: Cluster, pool: str) -> None:
    for number in range(20):
        assert three["n1"].add(f"c{number}", f"t/{number}", pool=pool).code == 0
    before = three.level(pool)
    for member in three:
        assert member.stop() == 0
    alone = three["n1"].spawn()
    _wait_until_it_listens(alone)
    assert alone.cni("status", "c", pool=pool).code == 50
    assert not alone.is_ready()
    stale = alone.ask("GET", f"/v1/reservations?pool={pool}&stale=ok")
    assert stale.headers["Ipamd-Stale"] == "true"
    assert alone.listed(pool) == before


def test_k03c_the_same_pod_gets_the_same_address_after_all_were_stopped(three: Cluster, pool: str) -> None:
    given = three["n1"].add("c1", "t/sts-0", pool=pool)
    for member in three:
        assert member.stop() == 0
    three.revive()
    again = three["n2"].add("c2", "t/sts-0", pool=pool)
    assert (again.code, again.address) == (0, given.address)
    assert [(pod, container) for _, pod, _, container in three.level(pool)] == [("t/sts-0", "c2")]


def test_w46_one_of_three_waits_and_all_works_once_the_others_come(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    first = cluster["n1"].spawn()
    try:
        _wait_until_it_listens(first)
        for verb, code in (("add", 11), ("del", 0), ("status", 50)):
            began = Stopwatch(first)
            assert first.cni(verb, "c", timeout_s=3).code == code
            assert began.spent_s() < 5
        listing = cluster.ctl("--timeout", "3", "reservation", "list", server="n1")
        assert listing.returncode == 3
        assert not first.is_ready()
        for member in (cluster["n2"], cluster["n3"]):
            member.spawn()
        for member in cluster:
            _wait_until_it_listens(member)
        began = Stopwatch(*cluster)
        for member in cluster:
            member.wait_ready()
        assert began.spent_s() < 10
        cluster.pool()
        assert [member.add(f"c{n}", f"t/{n}").code for n, member in enumerate(cluster)] == [0, 0, 0]
        assert [first.cni(verb, "c0", "t/0").code for verb in ("status", "del")] == [0, 0]
        assert began.spent_s() < 10
        listing = cluster.ctl("-o", "json", "reservation", "list", server="n1")
        assert [item["pod_ref"] for item in json.loads(listing.stdout)["items"]] == ["t/1", "t/2"]
        assert "waiting for n2, n3" in first.log
        assert len([member for member in cluster if member.token_file.exists()]) == 1
    finally:
        cluster.__exit__(None, None, None)


@pytest.mark.parametrize("cut", ["200 bytes of the file", "200 bytes of the entries", "half", "an entry not applied"])
def test_p06_a_journal_that_lost_its_end_is_made_whole_or_refused(tmp_path: Path, cut: str) -> None:
    """Cut below what it has applied, a member refuses to start; else it starts and gets the rest from the others."""
    with Cluster(tmp_path) as cluster:
        cluster.pool()
        for number in range(50):
            assert cluster["n1"].add(f"c{number}", f"t/{number}").code == 0
        before = cluster.level()
        victim = cluster["n2"]
        victim.kill()
        applied = position(victim.data_dir)
        assert applied is not None
        last = _cut(victim, cut)
        assert (last < applied[0]) == (cut in ("200 bytes of the entries", "half")), (last, applied)
        if last >= applied[0]:
            victim.start()
            assert (f"ends in a torn record behind index {last}" in victim.log) == (cut == "an entry not applied")
        else:
            _refuses_and_comes_back(cluster, victim, last, applied[0])
        assert cluster.level() == before


def _refuses_and_comes_back(cluster: Cluster, victim: MemberServer, last: int, applied: int) -> None:
    """It says what it found and what to do, and after that has been done it is there again."""
    with pytest.raises(ServerError, match="status 1"):
        victim.start()
    for words in (str(applied), str(last), "cluster remove", "--join"):
        assert words in victim.log
    assert cluster.ctl("cluster", "remove", "n2", server="n1").returncode == 0
    shutil.rmtree(victim.data_dir)
    victim.flags = ("--join", cluster["n1"].url, "--token-file", str(_token(cluster, cluster.directory)))
    victim.start()


def _token(cluster: Cluster, directory: Path) -> Path:
    """An admin token that outlives the member whose directory holds the first one."""
    made = cluster["n1"].ask("POST", "/v1/tokens", {"name": "joiner", "role": "admin"})
    file = directory / "token"
    file.write_text(made.json["secret"])
    return file


def _cut(member: MemberServer, how: str) -> int:
    """Cut the newest file of a journal, which is longer than its entries from the beginning; the last entry that is left.

    The entry that was not applied is one of which only the first half was ever written.
    """
    journal = max((member.data_dir / "journal").glob("*.log"))
    data = journal.read_bytes()
    entries = data.rstrip(b"\0")
    left = {
        "200 bytes of the file": data[:-200],
        "200 bytes of the entries": entries[:-200],
        "half": entries[: len(entries) // 2],
        "an entry not applied": entries + entries[-200:-100],
    }[how]
    journal.write_bytes(left)
    return survey(journal.parent, OsFiles())[-1].contents.last


def _wait_until_it_listens(member: MemberServer) -> None:
    deadline = time.monotonic() + READY_S
    while True:
        with suppress(Away):
            assert member.ask("GET", "/livez").status == 200
            return
        assert time.monotonic() < deadline, member.log
        time.sleep(0.02)
