"""Owns the JSON of the cluster: what its members look like, and what is said to change them."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import msgspec

import ipamd
from ipamd.api.schema.common import Given, Shown
from ipamd.core.model import Member
from ipamd.core.names import InvalidName, check_name
from ipamd.errors import ApiError
from ipamd.service.cluster import ShownCluster, ShownMember

MAX_TEXT = 300
MAX_LEVEL = 10_000


class MemberBody(Given):
    """A member to take in: its name, and how others reach it. Its id is known once it has started."""

    name: str
    raft: str
    api: str
    member_id: str = ""
    level: int = 1

    def member(self) -> Member:
        """The member. Raises ApiError."""
        try:
            check_name(self.name, "name")
        except InvalidName as error:
            raise ApiError("invalid_request", str(error)) from None
        if not _is_endpoint(self.raft):
            raise ApiError("invalid_request", f"raft {self.raft[:64]!r} is not HOST:PORT (IPv6 in brackets)")
        if not _is_url(self.api):
            raise ApiError("invalid_request", f"api {self.api[:64]!r} is not a URL of the form https://HOST:PORT")
        if self.member_id and not re.fullmatch(r"[0-9a-f]{32}", self.member_id):
            raise ApiError("invalid_request", f"member_id {self.member_id[:64]!r} is not 32 hex digits")
        if not 1 <= self.level <= MAX_LEVEL:
            raise ApiError("invalid_request", f"level is not a number from 1 to {MAX_LEVEL}")
        return Member(self.name, self.member_id, self.raft, self.api, voter=False, level=self.level)


class LeaderBody(Given):
    """Who is to lead; null: the most advanced of the others."""

    name: str | None = None


class MemberShown(Shown):
    """A Raft member. What is not known of it, because it does not answer, is null.

    `level` is what its program knows of the log, `version` the program's own. `digest` is that of its state at
    `digest_index`; the digests of all members at one index are equal.
    """

    name: str
    member_id: str
    raft: str
    api: str
    voter: bool
    level: int
    version: str | None
    reachable: bool | None
    index: int | None
    lag: int | None
    certificate_days: int | None
    digest_index: int | None
    digest: str | None


class ClusterShown(Shown):
    """The cluster as the member that answers (`self`) knows it.

    `epoch`: how often its state was restored from a backup; `unconfirmed` are the first hundred pools that wait since
    to be confirmed.
    """

    cluster_id: str | None
    epoch: int
    unconfirmed: tuple[str, ...]
    self_: str = msgspec.field(name="self")
    leader: str | None
    term: int
    index: int
    members: tuple[MemberShown, ...]


def show_cluster(shown: ShownCluster, self_name: str, digest_index: int | None = None) -> ClusterShown:
    """The cluster, with what its members say of themselves; with the digests at an index, or each one's newest."""
    status = shown.status
    return ClusterShown(
        cluster_id=shown.cluster_id,
        epoch=shown.epoch,
        unconfirmed=shown.unconfirmed,
        self_=self_name,
        leader=status.leader,
        term=status.term,
        index=status.applied,
        members=tuple(_show(one, shown, digest_index, is_self=one.member.name == self_name) for one in shown.members),
    )


def _show(one: ShownMember, shown: ShownCluster, wanted: int | None, *, is_self: bool) -> MemberShown:
    member, glimpse = one
    index = glimpse.applied if glimpse is not None else shown.status.applied if is_self else None
    digests = {} if glimpse is None else glimpse.digests
    digest_index = max((at for at in digests if wanted in (None, at)), default=None)
    return MemberShown(
        name=member.name,
        member_id=member.member_id,
        raft=member.raft,
        api=member.api,
        voter=member.voter,
        level=member.level,
        version=ipamd.__version__ if is_self else glimpse.version or None if glimpse is not None else None,
        reachable=glimpse is not None or is_self,
        index=index,
        lag=None if index is None else max(0, shown.committed - index),
        certificate_days=None if glimpse is None else glimpse.certificate_days,
        digest_index=digest_index,
        digest=None if digest_index is None else digests[digest_index],
    )


def _is_endpoint(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    is_plain = ":" not in host or (host.startswith("[") and host.endswith("]"))
    is_port = port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536
    return bool(colon and host) and is_plain and is_port and len(text) <= MAX_TEXT and text.isprintable()


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    has_more = parts.path or parts.query or parts.fragment or parts.username is not None
    is_plain = text.isascii() and text.isprintable() and len(text) <= MAX_TEXT
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port is not None and not has_more and is_plain
