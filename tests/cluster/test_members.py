"""Members come, go and lead: the row R02, and the verbs of `ipamctl cluster`."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.load import wait_for
from tests.support.cluster import Cluster, MemberServer
from tests.support.server import STOP_S, ServerError, free_port
from tests.support.stopwatch import Stopwatch

_numbers = count(4)


@pytest.fixture
def joined(three: Cluster, tmp_path: Path) -> Iterator[MemberServer]:
    """A fourth server, not started, that joins with an empty directory; in the end it is gone again."""
    token = three["n1"].ask("POST", "/v1/tokens", {"name": tmp_path.name[:60], "role": "admin"}).json["secret"]
    (tmp_path / "token").write_text(token)
    name = f"m{next(_numbers)}"
    member = three.make(name, "--join", three["n1"].url, "--token-file", str(tmp_path / "token"))
    yield member
    if member.is_running:
        member.kill()
    del three.members[name]
    three.ctl("cluster", "remove", name)


def test_a_new_member_gets_everything_a_vote_and_may_lead(three: Cluster, pool: str, joined: MemberServer) -> None:
    for number in range(20):
        assert three["n1"].add(f"c{number}", f"t/{number}", pool=pool).code == 0
    joined.start()
    assert joined.listed(pool, stale=False) == three["n1"].listed(pool)
    _wait_for_vote(three, joined)
    assert three.ctl("cluster", "transfer", joined.name).returncode == 0
    assert three.leader() is joined
    assert joined.add("cx", "t/x", pool=pool).code == 0
    three.level(pool)
    assert three.ctl("cluster", "transfer").returncode == 0
    assert three.leader() is not joined


def test_a_member_starts_again_though_the_token_that_it_joined_with_has_ended(
    three: Cluster, joined: MemberServer, tmp_path: Path
) -> None:
    def has_said(times: int) -> bool:
        """A member says that it is ready once it has found it out itself: who asks it may know before."""
        return joined.log.count('"msg": "ready"') == times

    joined.start()
    _wait_for_vote(three, joined)
    wait_for(partial(has_said, 1))
    spoils: tuple[Callable[[], object], ...] = (
        lambda: (tmp_path / "token").write_text("ipamd_expired"), (tmp_path / "token").unlink
    )  # fmt: skip
    for times, spoil in enumerate(spoils, 2):
        spoil()
        joined.kill()
        joined.start()
        wait_for(partial(has_said, times))
    assert joined.log.count(f"it is not compared with {three['n1'].url}") == 2


def test_a_removed_member_stops_and_says_so(three: Cluster, pool: str, joined: MemberServer) -> None:
    joined.start()
    _wait_for_vote(three, joined)
    assert three.ctl("cluster", "remove", joined.name, server="n1").returncode == 0
    assert joined.process is not None
    assert joined.process.wait(STOP_S) == 0
    assert "was removed from its cluster" in joined.log
    with pytest.raises(ServerError, match="status 0"):
        joined.start()
    assert three["n1"].add("c", "t/a", pool=pool).code == 0
    names = [member["name"] for member in three["n1"].status()["members"]]
    assert names == ["n1", "n2", "n3"]


def test_r02_a_member_with_data_of_its_own_is_refused_until_that_is_gone(
    three: Cluster, pool: str, joined: MemberServer
) -> None:
    flags, joined.flags = joined.flags, ()
    joined.start()
    made = joined.ask("POST", "/v1/pools", {"name": "own", "subnet": "192.0.2.0/24"})
    assert made.status == 201
    for number in range(3):
        assert joined.add(f"c{number}", f"own/{number}", pool="own").code == 0
    before = joined.listed()
    refused = three.ctl(
        "cluster", "add", joined.name, "--raft", f"127.0.0.1:{joined.raft_port}", "--api", joined.url, server="n1"
    )
    assert refused.returncode == 1
    assert "has data of another cluster" in refused.stderr
    joined.stop()
    joined.flags = flags
    with pytest.raises(ServerError, match="status 1"):
        joined.start()
    assert "holds data of another cluster" in joined.log
    assert f"empty {joined.data_dir}" in joined.log
    joined.flags = ()
    joined.start()
    assert joined.listed() == before
    joined.stop()
    shutil.rmtree(joined.data_dir)
    joined.flags = flags
    joined.start()
    assert three["n1"].add("c", "t/a", pool=pool).code == 0
    assert joined.listed(pool, stale=False) == three["n1"].listed(pool)
    assert joined.restart().is_ready()


def test_the_lead_goes_where_it_is_sent(three: Cluster, pool: str) -> None:
    for name in ("n1", "n2", "n3", "n1"):
        done = three.ctl("-o", "json", "cluster", "transfer", name)
        assert done.returncode == 0, done.stderr
        assert three.leader().name == name
        assert three["n2"].add(f"c{name}", f"t/{name}", pool=pool).code == 0
    unknown = three.ctl("cluster", "transfer", "n9")
    assert unknown.returncode == 4
    assert "there is no member n9" in unknown.stderr


def test_status_tells_all_of_every_member(three: Cluster, pool: str) -> None:
    assert three["n1"].add("c", "t/a", pool=pool).code == 0
    done = three.ctl("-o", "json", "cluster", "status")
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    assert shown["leader"] == three.leader().name
    for member in shown["members"]:
        assert (member["reachable"], member["voter"], member["certificate_days"]) == (True, True, 729)
        assert len(member["member_id"]) == 32
        assert member["index"] > 1


def test_a_stopped_leader_hands_over_first(three: Cluster, pool: str) -> None:
    leader = three.leader()
    term = leader.status()["term"]
    began = time.monotonic()
    assert leader.stop() == 0
    assert time.monotonic() - began < 20, "it does not wait for what does not come"
    others = [member for member in three if member is not leader]
    next_leader = three.leader(others)
    assert next_leader.status()["term"] == term + 1
    assert others[0].add("c", "t/a", pool=pool).code == 0


def test_one_becomes_three_and_one_again_without_a_pause(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1)
    cluster["n1"].flags = ()
    with cluster:
        cluster.pool()
        token = ("--token-file", str(cluster["n1"].token_file))
        with writing(cluster["n1"]) as written:
            for name in ("n2", "n3"):
                cluster.make(name, "--join", cluster["n1"].url, *token).start()
                _wait_for_vote(cluster, cluster[name])
            assert {one["name"]: one["voter"] for one in cluster["n2"].status()["members"]} == {
                "n1": True,
                "n2": True,
                "n3": True,
            }
            time.sleep(0.5)
            for name in ("n2", "n3"):
                assert cluster.ctl("cluster", "remove", name, server="n1").returncode == 0
                process = cluster[name].process
                assert process is not None
                assert process.wait(STOP_S) == 0
        assert [member["name"] for member in cluster["n1"].status()["members"]] == ["n1"]
        last = cluster.ctl("cluster", "remove", "n1", server="n1")
        assert (last.returncode, "the last member with a vote" in last.stderr) == (1, True)
        assert written.failed == []
        assert written.longest_s < 2.5
        assert len(cluster["n1"].listed()) == written.done


def test_one_without_certificates_needs_a_restart_with_them_first(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 1)
    first = cluster["n1"]
    certificates, first.tls, first.flags = first.tls, (), ()
    first.spawn()
    try:
        wait_for(lambda: first.socket.exists() and first.ask("GET", "/readyz").status == 200)
        cluster.pool()
        assert first.add("c", "t/a").code == 0
        add = ("cluster", "add", "n2", "--raft", "127.0.0.1:1", "--api", "https://127.0.0.1:2")
        refused = cluster.ctl(*add, server="n1")
        assert refused.returncode == 1
        assert "started without certificates" in refused.stderr
        first.stop()
        first.tls = certificates
        first.start()
        joiner = cluster.make("n2", "--join", first.url, "--token-file", str(first.token_file)).start()
        _wait_for_vote(cluster, joiner)
        assert joiner.listed() == first.listed() != []
        assert first.status()["members"][0]["api"] == first.url
        first.stop()
        first.tls = ()
        with pytest.raises(ServerError, match="status 1"):
            first.start()
        assert "its cluster has others" in first.log.replace("member's cluster", "its cluster")
    finally:
        cluster.__exit__(None, None, None)


def test_a_member_that_lost_its_disk_comes_back_under_another_id(three: Cluster, pool: str, tmp_path: Path) -> None:
    assert three["n1"].add("c", "t/a", pool=pool).code == 0
    victim = three["n3"]
    before = {one["name"]: one["member_id"] for one in three["n1"].status()["members"]}
    victim.kill()
    shutil.rmtree(victim.data_dir)
    victim.spawn()
    wait_for(lambda: "lost its data" in victim.log)
    assert "ipamctl cluster remove n3, then --join" in victim.log
    assert not victim.is_ready()
    assert victim.cni("status", "c", pool=pool).code == 50
    victim.kill()
    shutil.rmtree(victim.data_dir, ignore_errors=True)
    assert three.ctl("cluster", "remove", "n3", server="n1").returncode == 0
    token = three["n1"].ask("POST", "/v1/tokens", {"name": "rejoin", "role": "admin"}).json["secret"]
    (tmp_path / "token").write_text(token)
    flags, victim.flags = victim.flags, ("--join", three["n1"].url, "--token-file", str(tmp_path / "token"))
    victim.start()
    _wait_for_vote(three, victim)
    after = {one["name"]: one["member_id"] for one in three["n1"].status()["members"]}
    assert after["n3"] != before["n3"]
    assert {name: after[name] for name in ("n1", "n2")} == {name: before[name] for name in ("n1", "n2")}
    assert victim.listed(pool, stale=False) == three["n1"].listed(pool)
    victim.flags = flags
    victim.restart()
    three.level(pool)


def test_a_member_that_moved_is_found_where_it_is_now(three: Cluster, pool: str) -> None:
    moved = three["n2"]
    moved.stop()
    ports = moved.port, moved.raft_port
    moved.port, moved.raft_port = free_port(), free_port()
    advertised = ("--advertise-raft", f"127.0.0.1:{moved.raft_port}", "--advertise-url", moved.url)
    flags, moved.flags = moved.flags, (*moved.flags, *advertised)
    moved.start()
    wait_for(lambda: _shown(three, "n2")["raft"] == f"127.0.0.1:{moved.raft_port}")
    assert _shown(three, "n2")["api"] == moved.url
    assert three.ctl("cluster", "status", server="n1").returncode == 0
    assert moved.add("c", "t/a", pool=pool).code == 0
    moved.stop()
    moved.port, moved.raft_port = ports
    moved.flags = flags
    moved.start()
    wait_for(lambda: _shown(three, "n2")["api"] == moved.url)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--join", "{url}", "--token-file", "{empty}"), "does not take this member in"),
        (("--join", "{url}", "--token-file", "{none}"), "cannot be read"),
    ],
)
def test_who_may_not_join_is_told_why(three: Cluster, tmp_path: Path, flags: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "empty").write_text("ipamd_wrong\n")
    places = {"url": three["n1"].url, "empty": str(tmp_path / "empty"), "none": str(tmp_path / "none")}
    name = f"x{next(_numbers)}"
    stranger = three.make(name, *(flag.format(**places) for flag in flags))
    try:
        with pytest.raises(ServerError, match="status 1"):
            stranger.start()
        assert sentence in stranger.log
        assert "Traceback" not in stranger.log
    finally:
        del three.members[name]


@dataclass
class Written:
    """What a writer did meanwhile."""

    done: int = 0
    failed: list[object] = field(default_factory=list)
    longest_s: float = 0.0


@contextmanager
def writing(member: MemberServer) -> Iterator[Written]:
    """ADDs through a member, one after the other, until the end of the block."""
    written, stopping = Written(), threading.Event()

    def write() -> None:
        while not stopping.is_set():
            began = Stopwatch(member)
            got = member.add(f"w{written.done}", f"writer/{written.done}")
            written.longest_s = max(written.longest_s, began.spent_s())
            if got.code != 0:
                written.failed.append(got.body)
                return
            written.done += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield written
    finally:
        stopping.set()
        thread.join(30)


def _shown(three: Cluster, name: str) -> dict[str, Any]:
    members: list[dict[str, Any]] = three["n1"].status()["members"]
    return next(member for member in members if member["name"] == name)


def _wait_for_vote(three: Cluster, member: MemberServer) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        shown = {one["name"]: one["voter"] for one in three["n1"].status()["members"]}
        if shown.get(member.name):
            return
        time.sleep(0.1)
    raise AssertionError(f"{member.name} has no vote yet: {shown}")
