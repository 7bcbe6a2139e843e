"""Owns small files beside the journal that are only ever replaced whole: a mark and a CRC tell whether one is.

Mark, CRC-32 of all that follows and format, both u32 and little-endian, then the content.
"""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from ipamd.consensus.failures import JournalFailed, JournalFull, StartRefused, other_format
from ipamd.consensus.files import NO_ROOM, File, Files
from ipamd.consensus.segments import sync_names, unlink
from ipamd.consensus.survey import WAY_OUT

FORMAT = 1

_MARK = b"IPAMFILE"
_FORMAT_BYTES = 4
_DRAFT = ".new"


def read(path: Path, files: Files) -> bytes | None:
    """What the file holds; None: it is not there. Raises StartRefused for a damaged one, OSError."""
    if path.name not in files.names(path.parent):
        return None
    file = files.open(path, writable=False)
    try:
        data = file.pread(file.size(), 0)
    finally:
        file.close()
    content = data[len(_MARK) + 4 :]
    if data != _framed(content) or len(content) < _FORMAT_BYTES:
        raise StartRefused(f"{path} is damaged; {WAY_OUT}")
    version = int.from_bytes(content[:_FORMAT_BYTES], "little")
    if version != FORMAT:
        raise StartRefused(other_format(path, version, FORMAT))
    return content[_FORMAT_BYTES:]


def write(path: Path, body: bytes, files: Files) -> None:
    """Returns once it is on the disk. Raises JournalFull (nothing has changed), JournalFailed."""
    draft = path.with_name(path.name + _DRAFT)
    if draft.name in files.names(path.parent):
        unlink(draft, files)
    try:
        _fill(files.create(draft), _framed(FORMAT.to_bytes(_FORMAT_BYTES, "little") + body))
        files.rename(draft, path)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise JournalFull(f"no room for {path}") from error
        raise JournalFailed(f"{path} cannot be written: {error.strerror}") from error
    sync_names(path.parent, files)


def remove(path: Path, files: Files) -> None:
    """Remove it, durably. Raises JournalFailed."""
    unlink(path, files)
    sync_names(path.parent, files)


def _framed(content: bytes) -> bytes:
    return _MARK + crc32(content).to_bytes(4, "little") + content


def _fill(file: File, data: bytes) -> None:
    try:
        file.pwrite(data, 0)
        file.datasync()
    finally:
        file.close()
