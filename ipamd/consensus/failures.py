"""Owns what can go wrong below the log, each as one sentence."""

from __future__ import annotations


class StartRefused(Exception):  # noqa: N818 - what happens, not an error of a caller
    """What was found is nothing to start on; the sentence says why and names a way out."""


class JournalFull(Exception):  # noqa: N818 - a state of the disk
    """There is no room for a write. Nothing of it is left behind: the journal is as it was after the last sync."""


class JournalFailed(Exception):  # noqa: N818 - a state of the disk
    """Nobody knows any more what is on the disk, or it contradicts what was asked: the process must stop."""
