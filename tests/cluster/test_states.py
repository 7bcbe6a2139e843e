"""The members' states are compared all the time: whoever was tampered with stops, the others go on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.cluster import Cluster


def test_a_member_whose_state_was_changed_behind_its_back_stops(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, "--digest-every-s", "1") as cluster:
        cluster.pool()
        for number in range(5):
            assert cluster["n1"].add(f"c{number}", f"t/{number}").code == 0
        cluster.wait_for_equal_digests()
        victim = cluster.followers()[0]
        others = [member for member in cluster if member is not victim]
        assert victim.stop() == 0
        with closing(sqlite3.connect(victim.data_dir / "state.db")) as planted:
            planted.execute("UPDATE reservations SET note = 'tampered'")
            planted.commit()
        victim.spawn()
        assert victim.process is not None
        assert victim.process.wait(20) == 70
        assert "this one is not that of the majority, and stops" in victim.log
        assert others[0].add("cx", "t/x").code == 0
        assert all(member.is_running for member in others)
        assert f"{victim.name}" in others[0].log + others[1].log
