"""The members' states are compared all the time: whoever was tampered with stops, the others go on."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from ipamd import __version__
from ipamd.core.levels import LEVEL
from tests.cluster.load import wait_for
from tests.support.cluster import Cluster, MemberServer
from tests.support.server import STOP_S


def tamper(member: MemberServer, statement: str) -> None:
    with closing(sqlite3.connect(member.data_dir / "state.db")) as planted:
        planted.execute(statement)
        planted.commit()


def repaired(member: MemberServer) -> None:
    command = [sys.executable, "-m", "ipamd.main", "doctor", "--data-dir", str(member.data_dir), "--apply"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, "repaired: make the state anew from the journal" in done.stdout) == (0, True), done.stdout


def test_a_member_whose_state_was_changed_behind_its_back_stops(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, "--digest-every-s", "1") as cluster:
        cluster.pool()
        for number in range(5):
            assert cluster["n1"].add(f"c{number}", f"t/{number}").code == 0
        cluster.wait_for_equal_digests()
        victim = cluster.followers()[0]
        others = [member for member in cluster if member is not victim]
        assert victim.stop() == 0
        tamper(victim, "UPDATE reservations SET note = 'tampered'")
        victim.spawn()
        assert victim.process is not None
        assert victim.process.wait(STOP_S) == 70
        assert "this one is not that of the majority, and stops" in victim.log
        assert others[0].add("cx", "t/x").code == 0
        assert all(member.is_running for member in others)
        wait_for(lambda: f"{victim.name}" in others[0].log + others[1].log)


def test_states_are_compared_when_an_operator_asks(tmp_path: Path) -> None:
    """The turn by itself would come in a minute: what is shown is of now."""
    with Cluster(tmp_path, 3) as cluster:
        cluster.pool()
        assert cluster["n1"].add("c1", "t/1").code == 0
        done = cluster.ctl("-o", "json", "cluster", "status", "--verify")
        assert (done.returncode, done.stderr) == (0, "")
        members = json.loads(done.stdout)["members"]
        assert len({(member["digest_index"], member["digest"]) for member in members}) == 1
        assert members[0]["digest"] is not None
        assert {(member["level"], member["version"]) for member in members} == {(LEVEL, __version__)}
        victim = cluster.followers()[0]
        assert victim.stop() == 0
        tamper(victim, "DELETE FROM addresses")
        assert cluster.leader().add("c2", "t/2").code == 0
        repaired(victim)
        victim.start()
        done = cluster.ctl("cluster", "status", "--verify", server=victim.name)
        assert (done.returncode, done.stderr) == (0, ""), "what was repaired differs from the others"

        assert victim.stop() == 0
        tamper(victim, "UPDATE reservations SET note = 'tampered'")
        victim.start()
        done = cluster.ctl("cluster", "status", "--verify", server=cluster.leader().name)
        assert done.returncode == 5
        assert f"the state of {victim.name} was not compared" in done.stderr or "differ: " in done.stderr
