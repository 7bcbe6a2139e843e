"""Owns the samples of the log: how Raft stands, and where the time of a write goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from ipamd.core.figures import Histogram, PeerFigures
from ipamd.core.ports import LogStatus
from ipamd.metrics.exposition import Sample


class LogFigures(Protocol):
    """The counters that a log keeps: `ipamd.consensus.figures.Figures` is one."""

    sync_times: Histogram
    queue_times: Histogram
    log_times: Histogram
    apply_times: Histogram
    answer_times: Histogram
    batch_items: Histogram
    synced_bytes: int
    elections: int
    full: int
    bad_messages: int
    bad_connections: int
    snapshots: int


class WatchedLog(Protocol):
    """A log that keeps figures: `ipamd.consensus.node.RaftNode` is one."""

    @property
    def figures(self) -> LogFigures:
        """Counts since the start."""

    @property
    def in_flight(self) -> int:
        """How many wait or are under way."""

    @property
    def ready(self) -> bool:
        """Whether this member can serve."""

    @property
    def members(self) -> Sequence[object]:
        """The members in force."""

    def peer_figures(self) -> Sequence[PeerFigures]:
        """How a leader sees the others."""

    def status(self) -> LogStatus:
        """What this member knows of the log."""


def log(watched: WatchedLog) -> Iterator[Sample]:
    """All of a log."""
    yield from _stages(watched.figures)
    yield Sample("ipamd_log_in_flight", watched.in_flight)
    yield from _journal(watched.figures)
    yield from _raft(watched)


def _stages(figures: LogFigures) -> Iterator[Sample]:
    for stage in ("queue", "log", "apply", "answer"):
        yield Sample("ipamd_log_stage_duration_seconds", getattr(figures, f"{stage}_times"), (stage,))
    yield Sample("ipamd_log_entry_commands", figures.batch_items)


def _journal(figures: LogFigures) -> Iterator[Sample]:
    yield Sample("ipamd_journal_sync_duration_seconds", figures.sync_times)
    yield Sample("ipamd_journal_synced_bytes_total", figures.synced_bytes)
    yield Sample("ipamd_journal_full_total", figures.full)


def _raft(watched: WatchedLog) -> Iterator[Sample]:
    status, figures = watched.status(), watched.figures
    yield Sample("ipamd_raft_term", status.term)
    yield Sample("ipamd_raft_is_leader", status.is_leader)
    yield Sample("ipamd_raft_has_leader", status.leader is not None)
    yield Sample("ipamd_raft_committed_index", status.committed)
    yield Sample("ipamd_raft_applied_index", status.applied)
    yield Sample("ipamd_raft_members", len(watched.members))
    for peer in watched.peer_figures():
        yield Sample("ipamd_raft_peer_lag_entries", peer.lag_entries, (peer.name,))
        if peer.silent_s is not None:
            yield Sample("ipamd_raft_peer_silent_seconds", peer.silent_s, (peer.name,))
    yield Sample("ipamd_raft_elections_won_total", figures.elections)
    yield Sample("ipamd_raft_snapshots_installed_total", figures.snapshots)
    yield Sample("ipamd_raft_bad_connections_total", figures.bad_connections)
    yield Sample("ipamd_raft_bad_messages_total", figures.bad_messages)
    yield Sample("ipamd_ready", watched.ready)
