"""Members come, go and lead: the row R02, and the verbs of `ipamctl cluster`."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.cluster import Cluster, MemberServer
from tests.support.server import ServerError

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


def test_a_removed_member_stops_and_says_so(three: Cluster, pool: str, joined: MemberServer) -> None:
    joined.start()
    _wait_for_vote(three, joined)
    assert three.ctl("cluster", "remove", joined.name, server="n1").returncode == 0
    assert joined.process is not None
    assert joined.process.wait(10) == 0
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
    assert time.monotonic() - began < 10
    others = [member for member in three if member is not leader]
    next_leader = three.leader(others)
    assert next_leader.status()["term"] == term + 1
    assert others[0].add("c", "t/a", pool=pool).code == 0


def _wait_for_vote(three: Cluster, member: MemberServer) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        shown = {one["name"]: one["voter"] for one in three["n1"].status()["members"]}
        if shown.get(member.name):
            return
        time.sleep(0.1)
    raise AssertionError(f"{member.name} has no vote yet: {shown}")
