"""Owns what can go wrong below the log, each as one sentence."""

from __future__ import annotations

from pathlib import Path


class StartRefused(Exception):  # noqa: N818 - what happens, not an error of a caller
    """What was found is nothing to start on; the sentence says why and names a way out."""


class FormatRefused(StartRefused):
    """What was found is whole, and of a format that this program does not read."""


class JournalFull(Exception):  # noqa: N818 - a state of the disk
    """There is no room for a write. Nothing of it is left behind: the journal is as it was after the last sync."""


class JournalFailed(Exception):  # noqa: N818 - a state of the disk
    """Nobody knows any more what is on the disk, or it contradicts what was asked: the process must stop."""


class OtherFormat(Exception):  # noqa: N818 - what the bytes are
    """Whole, and written in a format that this program does not read."""

    def __init__(self, found: int) -> None:
        super().__init__(f"format {found}")
        self.found = found


def other_format(path: Path, found: int, known: int) -> str:
    """What is said of a whole file of another format."""
    return f"{path} has format {found}, this program reads format {known}: start the version of ipamd that wrote it"
