"""Members whose log is compacted all the time, and whose state is then lost: the row R05."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.checker import check
from tests.cluster.load import RULES, Load, final, wait_for
from tests.kill.load import AT_ONCE
from tests.support.cluster import Cluster, MemberServer, rounds
from tests.support.server import ServerError
from tests.support.small_log import KEEP_ENTRIES

SEED = 5
SEVERAL = 5


class Small(MemberServer):
    """A server that keeps a hundred entries."""

    def command(self) -> list[str]:
        """The command line that starts it."""
        return ["tests.support.small_log" if word == "ipamd.main" else word for word in super().command()]


class SmallCluster(Cluster):
    """A cluster of such servers."""

    def build(self, directory: Path, *flags: str, name: str) -> MemberServer:
        """A server for a directory."""
        return Small(directory, *flags, name=name, shop=self.shop)


@pytest.fixture(params=[1, 3])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallCluster]:
    """One or three servers."""
    with SmallCluster(tmp_path, request.param, *AT_ONCE) as made:
        yield made


@pytest.mark.timeout(900 + 60 * rounds(20, 3))
def test_r05_kills_while_the_log_is_compacted_lose_nothing(cluster: SmallCluster) -> None:
    chance, load, members = random.Random(SEED), Load(cluster, SEED), list(cluster)
    with load.running():
        for number in range(rounds(20, 3)):
            time.sleep(chance.uniform(1, 2))
            victim = chance.choice(members)
            if number % 2:
                wait_for_compaction(victim)
            victim.restart()
        wait_for(lambda: min(map(first_entry, members)) > SEVERAL * KEEP_ENTRIES, 300)
        wait_for(lambda: load.history.acknowledged >= rounds(5000), 300)
    shown = final(cluster)
    assert check(load.history, RULES, shown) == []
    assert load.broken == []
    victim = chance.choice(members)
    lose_the_state(victim)
    if len(members) == 1:
        return
    others = [member for member in members if member is not victim]
    minted = others[0].ask("POST", "/v1/tokens", {"name": "joiner", "role": "admin"})
    token = cluster.directory / "token"
    token.write_text(minted.json["secret"])
    assert cluster.ctl("cluster", "remove", victim.name, server=others[0].name).returncode == 0
    shutil.rmtree(victim.data_dir)
    victim.flags = ("--join", others[0].url, "--token-file", str(token))
    victim.start()
    assert final(cluster) == shown


def first_entry(member: MemberServer) -> int:
    """Of the oldest file of its journal."""
    return min(int(file.stem) for file in (member.data_dir / "journal").glob("*.log"))


def wait_for_compaction(member: MemberServer) -> None:
    """Until it begins to drop files."""
    before, deadline_s = first_entry(member), time.monotonic() + 120
    while first_entry(member) == before:
        assert time.monotonic() < deadline_s, "its log is not compacted"
        time.sleep(0.001)


def lose_the_state(victim: MemberServer) -> None:
    """Without it, and with a journal that has lost its beginning, a member does not start, and not empty either."""
    assert victim.stop() == 0
    for file in victim.data_dir.glob("state.db*"):
        file.unlink()
    for _ in range(2):
        with pytest.raises(ServerError, match="status 1"):
            victim.start()
    assert "cluster remove" in victim.log
    assert "Traceback" not in victim.log
