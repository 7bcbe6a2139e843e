"""Members whose process, address or files come to harm: the rows H24, S11, L04, R03, R04, R05 and R06."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cluster.load import wait_for
from tests.support.cluster import Away, Cluster, Got, MemberServer, Row, owned_twice, rounds
from tests.support.server import ServerError, free_port


def until_known(three: Cluster, container: str, pod: str, pool: str) -> Got:
    """An ADD through whoever answers, again and again as a runtime does."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(Away):
            got = three.any().add(container, pod, pool=pool)
            if got.code != 11:
                return got
        time.sleep(0.05)
    raise AssertionError(f"no answer for {pod}")


def add_while_the_leader_dies(three: Cluster, container: str, pod: str, pool: str, after_s: float) -> None:
    """Through the leader itself, which is killed so soon after the request went out."""
    three.revive()
    leader = three.leader()

    def attempt() -> None:
        with suppress(Away):
            leader.add(container, pod, pool=pool, timeout_s=1)

    caller = threading.Thread(target=attempt)
    caller.start()
    time.sleep(after_s)
    leader.kill()
    caller.join()
    leader.spawn()


@pytest.mark.timeout(300 + 30 * rounds(200))
def test_h24_a_pod_whose_leader_dies_is_there_once(three: Cluster, pool: str) -> None:
    chance = random.Random(24)
    for number in range(rounds(200)):
        add_while_the_leader_dies(three, f"x{number}", f"t/{number}", pool, chance.uniform(0, 0.05))
        assert until_known(three, f"y{number}", f"t/{number}", pool).code == 0
    three.revive()
    listed = three.level(pool)
    assert sorted(pod for _, pod, _, _ in listed) == sorted(f"t/{number}" for number in range(rounds(200)))
    assert {container for *_, container in listed} == {f"y{number}" for number in range(rounds(200))}
    assert owned_twice(listed) == []
    usage = three["n1"].ask("GET", f"/v1/pools/{pool}/usage").json["ipv4"]
    assert usage["bound"] == rounds(200)


def test_s11_the_last_address_is_not_lost_with_the_leader(three: Cluster) -> None:
    ten = {"name": "ten", "subnet": "172.20.0.0/28", "range_start": "172.20.0.1", "range_end": "172.20.0.10"}
    made = three.any().ask("POST", "/v1/pools", ten)
    assert made.status == 201, made.body
    for number in range(9):
        assert three["n1"].add(f"c{number}", f"t/{number}", pool="ten").code == 0
    add_while_the_leader_dies(three, "c9", "t/9", "ten", 0.003)
    assert until_known(three, "c9", "t/9", "ten").code == 0
    three.revive()
    listed = three.level("ten")
    assert len(listed) == 10
    assert owned_twice(listed) == []
    assert three["n2"].add("c10", "t/10", pool="ten").code not in (0, 11)


def test_l04_a_pinned_address_is_never_given_away_not_even_in_the_first_moment(three: Cluster, pool: str) -> None:
    wanted = three["n1"].add("gw", "infra/gw", pool=pool).address
    assert wanted.endswith(".0.1")
    pin = {"pool": pool, "pod_ref": "infra/gw", "addresses": [wanted], "pin": True}
    assert three["n1"].ask("POST", "/v1/reservations", pin).status in (200, 201)
    for number in range(rounds(20)):
        for member in three:
            member.kill()
        for member in three:
            member.spawn()
        codes: list[int] = []
        early = 0
        deadline = time.monotonic() + 60
        while codes.count(0) < 6:
            assert time.monotonic() < deadline
            try:
                got = three.any().add(f"c{number}-{len(codes)}", f"t/{number}-{len(codes)}", pool=pool, timeout_s=1)
            except Away:
                early += 0 not in codes
                time.sleep(0.02)
                continue
            early += got.code == 11
            codes.append(got.code)
            assert got.code in (0, 11)
            assert got.code == 11 or got.address != wanted
        assert early > 0, "no call came early"
        three.revive()
    assert [pod for address, pod, _, _ in three.level(pool) if address.split("/")[0] == wanted] == ["infra/gw"]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Cluster]:
    """Three servers that a test may damage, with 50 reservations in pool p."""
    with Cluster(tmp_path) as cluster:
        cluster.pool()
        for number in range(50):
            assert cluster["n1"].add(f"c{number}", f"t/{number}").code == 0
        yield cluster


def test_r03_whoever_takes_the_port_of_a_member_is_not_taken_for_it(own: Cluster, tmp_path: Path) -> None:
    n1, n2, n3 = own
    if own.leader() is n3:
        assert own.ctl("cluster", "transfer", "n1", server="n1").returncode == 0
        wait_for(lambda: own.leader() is not n3)
    leader, term = own.leader(), n1.status()["term"]
    n3.stop()
    old_port, n3.raft_port = n3.raft_port, free_port()
    n3.flags = (*n3.flags, "--advertise-raft", f"127.0.0.1:{n3.raft_port}")
    n3.start()
    before = own.level()
    assert len(before) == 50
    assert n1.status()["term"] == term
    stranger = own.make("n4")
    stranger.raft_port = old_port
    stranger.flags = tuple(word for member in (n1, n2, stranger) for word in ("--peer", member.peer))
    stranger.spawn()
    try:
        assert n3.add("cx", "t/x").code == 0
        wait_for(stranger.socket.exists)
        until_s = time.monotonic() + 3
        while time.monotonic() < until_s:
            for member in (n1, n2, n3):
                shown = {one["name"]: one["raft"] for one in member.status()["members"]}
                assert shown == {one.name: f"127.0.0.1:{one.raft_port}" for one in (n1, n2, n3)}
            with suppress(Away):
                assert stranger.listed() == []
            time.sleep(0.1)
        assert not stranger.is_ready()
        assert stranger.cni("status", "c", pool="p").code == 50
        assert stranger.add("c4", "t/4").code == 11
        assert n3.add("cy", "t/y").code == 0
        assert (own.leader([n1, n2, n3]), n1.status()["term"]) == (leader, term)
    finally:
        if stranger.is_running:
            stranger.kill()
        del own.members["n4"]
    assert {pod for _, pod, *_ in own.level()} == {pod for _, pod, *_ in before} | {"t/x", "t/y"}


def damage(member: MemberServer, at: int, size: int | None = None) -> None:
    """Overwrite so many bytes of its database from there on, by default all that follow."""
    file = member.data_dir / "state.db"
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(random.Random(at).randbytes(file.stat().st_size - at if size is None else size))


def test_r04_a_member_whose_database_is_overwritten_serves_no_rubbish(own: Cluster) -> None:
    victim = own.followers()[0]
    others = [member for member in own if member is not victim]
    victim.stop()  # what it has goes from the write-ahead log into the file
    victim.start()
    truth = set(own.level())
    damage(victim, 0)
    deadline = time.monotonic() + 60
    number = 0
    while victim.is_running and victim.is_ready() and time.monotonic() < deadline:
        number += 1
        if not is_given(victim, f"v{number}", f"v/{number}"):
            wait_for(lambda: not (victim.is_running and victim.is_ready()))
        with suppress(Away):
            assert {row for row in victim.listed() if row[1].startswith("t/")} == truth
    assert not (victim.is_running and victim.is_ready()), "it is ready after its database was overwritten"
    assert others[0].add("o", "t/o").code == 0
    wait_for(lambda: not victim.is_running)
    assert "state.db" in victim.log


def is_given(member: MemberServer, container: str, pod: str) -> bool:
    """Whether an ADD succeeds; or it is answered with 11, or not at all."""
    with suppress(Away):
        code = member.add(container, pod).code
        assert code in (0, 11)
        return code == 0
    return False


@pytest.mark.timeout(300 + 60 * rounds(20))
def test_r06_a_damaged_page_is_found_or_does_no_harm(own: Cluster, tmp_path: Path) -> None:
    victim = own["n2"]
    truth = [row for row in own.level() if row[1].startswith("t/")]
    assert victim.stop() == 0
    saved = {file: file.read_bytes() for file in sorted(victim.data_dir.rglob("*")) if file.is_file()}
    whole = saved[victim.data_dir / "state.db"]
    chance = random.Random(6)
    used = [match.start() - 512 for match in re.finditer(b"t/30", whole)]
    found = 0
    for at in (len(whole) // 2, *used, *(chance.randrange(4096, len(whole) - 1024) for _ in range(rounds(20)))):
        damage(victim, at, 1024)
        found += is_found(victim, truth)
        for file in victim.data_dir.glob("state.db*"):
            file.unlink()
        for file, data in saved.items():
            file.write_bytes(data)
    assert found > 0, "no damage met what is used"
    victim.start()
    own.level()


def is_found(victim: MemberServer, truth: list[Row]) -> bool:
    """Whether a member refuses its damaged state, naming it and the way back; if not, it has what it should have."""
    seen = len(victim.log)
    try:
        victim.start()
        shown = [row for row in victim.listed() if row[1].startswith("t/")]
        assert shown == truth
        assert victim.add("again", "t/0").code == 0
        assert victim.add("c0", "t/0").code == 0
    except (ServerError, Away, AssertionError):
        if not wait_gone(victim):
            raise
        assert "state.db is damaged" in victim.log[seen:]
        assert "cluster remove" in victim.log[seen:]
        return True
    victim.kill()
    return False


def wait_gone(victim: MemberServer) -> bool:
    """Whether it ends by itself within a moment."""
    with suppress(AssertionError):
        wait_for(lambda: not victim.is_running, 30)
    return not victim.is_running
