"""Owns filling stopped members: one gets entries as a leader would have made them, others its log and its state."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from bench.prefill import BATCH, Prefill
from ipamd import datadir
from tests.support.cluster import Cluster, MemberServer


def stopped(cluster: Cluster) -> list[MemberServer]:
    """Stop all members; the leader is the first of them, and the last to stop: nobody has an entry that it lacks."""
    cluster.level()
    leader = cluster.leader()
    others = [member for member in cluster if member is not leader]
    for member in (*others, leader):
        member.kill()
    return [leader, *others]


def fill(first: MemberServer, others: Sequence[MemberServer], pool: str, count: int, batch: int = BATCH) -> None:
    """Reserve in a pool for so many new pods, in entries of `batch`. All of these members are stopped."""
    with Prefill(first.data_dir) as prefill:
        for _ in prefill.add(pool, count, "fill", batch):
            pass
    for member in others:
        take_over(first, member)


def take_over(source: MemberServer, target: MemberServer) -> None:
    """The state and the log of another member. Who it is and how it voted stays its own."""
    for old in (*target.data_dir.glob("state.db*"), *journal(target).glob("*.log")):
        old.unlink()
    for new in source.data_dir.glob("state.db*"):
        shutil.copy(new, target.data_dir)
    for new in journal(source).glob("*.log"):
        shutil.copy(new, journal(target))


def journal(member: MemberServer) -> Path:
    """Where its log lies."""
    return member.data_dir / datadir.JOURNAL_DIRECTORY
