"""Owns opening a journal after whatever happened: refuse damage, cut a torn tail, make what was read durable."""

from __future__ import annotations

import logging
from pathlib import Path

from ipamd.consensus.failures import StartRefused
from ipamd.consensus.files import Files
from ipamd.consensus.segments import Segment, sync_names, unlink
from ipamd.consensus.survey import WAY_OUT, Scanned, survey

logger = logging.getLogger(__name__)


def open_segments(directory: Path, files: Files) -> list[Segment]:
    """The segments, oldest first, all that they hold durable. Raises StartRefused, JournalFailed, OSError."""
    found = survey(directory, files)
    findings = [finding for scanned in found for finding in scanned.findings]
    for finding in findings:
        if finding.fatal:
            raise StartRefused(f"{finding.sentence}; {WAY_OUT}")
        logger.warning("%s: it is cut off, nothing in it was acknowledged", finding.sentence)
    for scanned in found:
        if scanned.headless:
            unlink(scanned.path, files)
    sync_names(directory, files)
    segments = [_open(scanned, files) for scanned in found if not scanned.headless]
    if segments:
        _settle(segments[-1], found[len(segments) - 1])
    return segments


def _open(scanned: Scanned, files: Files) -> Segment:
    file = files.open(scanned.path, writable=True)
    return Segment(scanned.path, file, scanned.contents)


def _settle(newest: Segment, scanned: Scanned) -> None:
    """What was read may be in the page cache only: put it on the disk before it is counted."""
    unsure = max(scanned.synced + 1, newest.first)
    if unsure <= newest.last:
        newest.rewrite(unsure)
    if scanned.torn:
        newest.cut_back()
    else:
        newest.datasync()
