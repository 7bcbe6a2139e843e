"""Owns a spooled call: a DEL that no cluster could take, as the bytes of one file, and the order of such files.

A file is a line `ipamd-spool VERSION CRC LENGTH` over what follows: a line of JSON with what the plugin said beside its
stdin, then its stdin as it came. A file's name is its number, and numbers are the order of arrival.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from ipamd.core.values import Value

CARRIED: Final = (
    "CNI-ContainerID",
    "CNI-Netns",
    "CNI-IfName",
    "CNI-Args",
    "Ipamd-Node",
    "Ipamd-Cluster",
    "Ipamd-Boot-Id",
    "Ipamd-Started",
)
"""The headers of a call that are kept. The rest is about the one exchange: who asks, and how much time it has."""

MOST_CALLS: Final = 100_000

VERSION = 1
_HEAD = re.compile(rb"ipamd-spool ([0-9]{1,4}) ([0-9a-f]{8}) ([0-9]{1,9})")
_KEPT = ".del"
_DIGITS = 16
_NUMBER = re.compile(r"[0-9]{16,}")


class SpoolError(Exception):
    """A call cannot be kept. One sentence."""


class Damaged(Exception):  # noqa: N818 - what the file is
    """A file holds no spooled call. One sentence."""


class SpooledCall(Value):
    """A DEL that waits: its headers of CARRIED, its body, and when it was put aside (unix time)."""

    request_id: str
    spooled_ms: int
    headers: Mapping[str, str]
    body: bytes

    @classmethod
    def of(cls, headers: Mapping[str, str], body: bytes, request_id: str, wall_ms: int) -> SpooledCall:
        """A call as it came; `headers` finds a name in any case."""
        return cls(request_id, wall_ms, {name: headers[name] for name in CARRIED if name in headers}, body)

    @property
    def container_id(self) -> str:
        """As it stands in the header, for people."""
        return self.headers.get("CNI-ContainerID", "")


class Spool(Protocol):
    """Calls that no cluster could take, kept until one can. Numbers are the order in which they came."""

    @property
    def length(self) -> int:
        """How many calls wait."""

    @property
    def refused(self) -> int:
        """How many calls that nobody takes are kept for people."""

    @property
    def oldest(self) -> int | None:
        """The number of the call to be delivered next; None: none waits."""

    @property
    def newest(self) -> int | None:
        """The number of the call that came last."""

    def first(self, most: int) -> Sequence[int]:
        """The numbers of up to so many calls that are to be delivered next, in order."""

    async def put(self, call: SpooledCall) -> None:
        """Keep a call; returns once a power cut cannot take it away. Raises SpoolError."""

    async def read(self, number: int) -> SpooledCall:
        """A call that waits. Raises Damaged, SpoolError."""

    async def drop(self, number: int) -> None:
        """A call was delivered: it waits no more. Raises SpoolError if its file stays."""

    async def refuse(self, number: int, why: str) -> None:
        """A call will never be taken: it waits no more, and is kept for people. Raises SpoolError if it is not."""


def encode(call: SpooledCall) -> bytes:
    """The bytes of a call's file."""
    said = {"request_id": call.request_id, "spooled_ms": call.spooled_ms, "headers": dict(call.headers)}
    content = json.dumps(said).encode() + b"\n" + call.body
    return b"ipamd-spool %d %08x %d\n%s" % (VERSION, zlib.crc32(content), len(content), content)


def decode(data: bytes) -> SpooledCall:
    """The call in a file. Raises Damaged."""
    head, _, content = data.partition(b"\n")
    found = _HEAD.fullmatch(head)
    if found is None:
        raise Damaged("it does not begin as a spooled call does")
    version, checksum, length = int(found[1]), int(found[2], 16), int(found[3])
    if version != VERSION:
        raise Damaged(f"it has format {version}, and this program knows {VERSION}")
    if length != len(content) or checksum != zlib.crc32(content):
        raise Damaged("its length or checksum is wrong")
    line, _, body = content.partition(b"\n")
    try:
        said = json.loads(line)
        headers = {str(name): str(value) for name, value in said["headers"].items() if name in CARRIED}
        return SpooledCall(str(said["request_id"]), int(said["spooled_ms"]), headers, body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"what it says of the call cannot be read: {error}") from error


def name_of(number: int) -> str:
    """The name of a file."""
    return f"{number:0{_DIGITS}d}{_KEPT}"


def numbers_of(names: Iterable[str], suffix: str = _KEPT) -> list[int]:
    """The numbers of the files among some names, in order; other names are left out."""
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if _NUMBER.fullmatch(stem))
