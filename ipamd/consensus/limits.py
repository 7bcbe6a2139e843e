"""Owns the numbers that bound the log: times of Raft, sizes of the journal, how much may wait."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """The defaults are for real members; tests make them small."""

    election_min_s: float = 0.5
    """On two busy cores ticks came up to 0.15 s late: a shorter time-out elects without need."""

    election_max_s: float = 1.0
    heartbeat_s: float = 0.1
    leader_fallback_s: float = 1.0
    """A leader that heard no majority for so long stops believing in itself."""

    connection_s: float = 2.0
    tick_s: float = 0.02

    segment_bytes: int = 16 * MIB
    """Size of a journal file, allocated at once: fdatasync took 140 us so, and 200 to 270 us on a growing file."""

    cache_bytes: int = 32 * MIB
    """Newest entries kept in memory; older ones are read from the file."""

    slice_bytes: int = 2 * MIB
    """An open-ended slice of the journal ends after so much."""

    keep_entries: int = 50_000
    """So many entries, or `keep_bytes` if that is less, stay in the journal for members that lag."""

    keep_bytes: int = 256 * MIB

    batch_items: int = 1_000
    """Commands in one entry at most."""

    gather_s: float = 0.05
    """While an entry is under way what comes in gathers for the next one, but for no longer: each entry costs every
    member a sync, a transaction and messages. Nobody waits where nothing is under way."""

    in_flight: int = 4_096
    """Proposals that wait or are under way at most; more are told to come again."""

    apply_entries: int = 256
    apply_bytes: int = MIB // 32
    """Entries handed to the state machine in one transaction at most, but for one that is larger alone. Nothing is read
    from the network meanwhile, and one turn of the loop reads 256 KiB of the frames of 1 MiB that a member gets which
    catches up: 170 commands take 25 ms on an idle machine, so that it still hears its leader on a busy one."""

    room_bytes: int = 64 * MIB
    """A journal that found no room is used again once so much is free (or a sixteenth of the file system)."""

    retry_s: float = 0.5
    """How often room is looked for, and an apply that found none is tried again."""

    level_entries: int = 100
    """A member without a vote gets one once it lacks no more than so many entries."""

    hand_over_s: float = 1.0
    """How long a leader that hands over takes nothing in: its successor must have the whole journal."""

    leave_s: float = 0.5
    """How long a member that was removed still answers, so that what it said goes out."""

    fetch_pause_s: float = 1.0
    """How soon a snapshot is asked for again."""

    frame_bytes: int = 16 * MIB
    """The largest frame between members."""

    backlog_bytes: int = 16 * MIB
    """No more entries are sent to a member while so much waits to go out to it."""

    handshake_s: float = 5.0
    """How long a connection may take to say who it is."""

    strangers: int = 64
    """Connections that have not said who they are; of more the oldest is closed."""

    stop_s: float = 5.0
    """How long a stop waits for what is under way."""
