"""Owns term and vote on the disk: what a member must not forget, or it votes twice in one term."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from ipamd.consensus.failures import FormatRefused, JournalFailed, JournalFull, OtherFormat, StartRefused, other_format
from ipamd.consensus.files import NO_ROOM, File, Files
from ipamd.consensus.segments import sync_names

NAME = "vote"
NEW_NAME = "vote.new"

_HEAD = struct.Struct("<8sIQB")
_CRC = struct.Struct("<I")
_MARK = b"IPAMDVOT"
FORMAT = 1


class Ballot(NamedTuple):
    """A term and whom this member voted for in it; None: nobody yet."""

    term: int
    vote: str | None


def encode_ballot(ballot: Ballot) -> bytes:
    """Mark, format, term, whether there is a vote, the vote, and a CRC-32 of all that."""
    body = _HEAD.pack(_MARK, FORMAT, ballot.term, ballot.vote is not None) + (ballot.vote or "").encode()
    return body + _CRC.pack(crc32(body))


def decode_ballot(data: bytes) -> Ballot | None:
    """The reverse; None: damaged. Raises OtherFormat."""
    body, crc = data[: -_CRC.size], data[-_CRC.size :]
    if len(body) < _HEAD.size or _CRC.pack(crc32(body)) != crc:
        return None
    mark, version, term, has_vote = _HEAD.unpack_from(body)
    if mark != _MARK:
        return None
    if version != FORMAT:
        raise OtherFormat(version)
    return Ballot(term, body[_HEAD.size :].decode() if has_vote else None)


def read_ballot(directory: Path, files: Files) -> Ballot | None:
    """What is on the disk; None: nothing yet. Raises StartRefused, OSError."""
    if NAME not in files.names(directory):
        return None
    file = files.open(directory / NAME, writable=False)
    try:
        ballot = decode_ballot(file.pread(file.size(), 0))
    except OtherFormat as error:
        raise FormatRefused(other_format(directory / NAME, error.found, FORMAT)) from None
    finally:
        file.close()
    if ballot is None:
        raise StartRefused(
            f"{directory / NAME} (this member's term and vote) is damaged: without it the member could vote twice; "
            "if other members have the state: ipamctl cluster remove it, empty its data directory, and start it with "
            "--join; if none has, put the whole data directory back from a copy"
        )
    return ballot


class HardState:
    """Term and vote, kept in one file that is only ever replaced whole."""

    def __init__(self, directory: Path, files: Files) -> None:
        """Raises StartRefused for a damaged file, OSError."""
        self._directory = directory
        self._files = files
        self.ballot = read_ballot(directory, files) or Ballot(0, None)
        if NEW_NAME in files.names(directory):
            files.unlink(directory / NEW_NAME)

    def store(self, ballot: Ballot) -> None:
        """Returns once it is on the disk. Raises JournalFull (nothing has changed), JournalFailed."""
        self._write_new(ballot)
        try:
            self._files.rename(self._directory / NEW_NAME, self._directory / NAME)
        except OSError as error:
            raise JournalFailed(f"{self._directory / NAME} cannot be replaced: {error.strerror}") from error
        sync_names(self._directory, self._files)
        self.ballot = ballot

    def _write_new(self, ballot: Ballot) -> None:
        path = self._directory / NEW_NAME
        try:
            file = self._files.create(path)
        except OSError as error:
            raise self._failure(error) from error
        try:
            self._fill(path, file, ballot)
        finally:
            file.close()

    def _fill(self, path: Path, file: File, ballot: Ballot) -> None:
        try:
            file.pwrite(encode_ballot(ballot), 0)
        except OSError as error:
            self._files.unlink(path)
            raise self._failure(error) from error
        try:
            file.datasync()
        except OSError as error:
            raise JournalFailed(f"{path} cannot be synced: {error.strerror}") from error

    def _failure(self, error: OSError) -> Exception:
        if error.errno in NO_ROOM:
            return JournalFull(f"no room for this member's term and vote in {self._directory}")
        return JournalFailed(f"this member's term and vote cannot be written to {self._directory}: {error.strerror}")
