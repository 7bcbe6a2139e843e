"""Owns plain counters of the log: what metrics are made of. Written by one thread, read by any."""

from __future__ import annotations

from dataclasses import dataclass


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

    def synced(self, took_s: float, size_bytes: int) -> None:
        """A sync of the journal ended."""
        self.syncs += 1
        self.sync_s += took_s
        self.longest_sync_s = max(self.longest_sync_s, took_s)
        self.synced_bytes += size_bytes

    def applied(self, took_s: float, entries: int) -> None:
        """A transaction ended."""
        self.applies += 1
        self.applied_entries += entries
        self.apply_s += took_s
