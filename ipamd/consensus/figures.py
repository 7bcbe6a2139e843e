"""Owns plain counters of the log: what metrics are made of. Written by one thread each, read by any."""

from __future__ import annotations

from dataclasses import dataclass, field

from ipamd.core.figures import COUNTS, Histogram


@dataclass(slots=True)
class Figures:
    """Counts and sums since the start; times in seconds."""

    syncs: int = 0
    sync_s: float = 0.0
    longest_sync_s: float = 0.0
    synced_bytes: int = 0
    entries: int = 0
    """Entries that this member made as leader."""

    items: int = 0
    """Commands in them."""

    applies: int = 0
    """Transactions of the state machine."""

    applied_entries: int = 0
    apply_s: float = 0.0
    elections: int = 0
    full: int = 0
    """How often a write found no room."""

    bad_messages: int = 0
    """What arrived on connections of members and was no message."""

    bad_connections: int = 0
    """Connections that were closed because no member speaks so."""

    snapshots: int = 0
    """Snapshots of other members that were installed."""

    sync_times: Histogram = field(default_factory=Histogram)
    queue_times: Histogram = field(default_factory=Histogram)
    """From when a command came in until an entry took it."""

    log_times: Histogram = field(default_factory=Histogram)
    """From when this member appended an entry until the state machine was given it: synced by a majority."""

    apply_times: Histogram = field(default_factory=Histogram)
    answer_times: Histogram = field(default_factory=Histogram)
    """From when a command was applied until its caller went on. Written by the callers' thread."""

    batch_items: Histogram = field(default_factory=lambda: Histogram(COUNTS))
    """Commands in an entry that this member made as leader."""

    apply_began_s: float = 0.0
    """When the last transaction began, on the monotonic clock."""

    def synced(self, took_s: float, size_bytes: int) -> None:
        """A sync of the journal ended."""
        self.syncs += 1
        self.sync_s += took_s
        self.sync_times.note(took_s)
        self.longest_sync_s = max(self.longest_sync_s, took_s)
        self.synced_bytes += size_bytes

    def applied(self, began_s: float, took_s: float, entries: int) -> None:
        """A transaction ended."""
        self.apply_began_s = began_s
        self.apply_times.note(took_s)
        self.applies += 1
        self.applied_entries += entries
        self.apply_s += took_s
