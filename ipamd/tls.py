"""Owns the certificates of this server: contexts for its connections that follow the files, without a restart.

Everything is TLS 1.3. Who answers for a member shows a certificate of the cluster's own authority with the URI
`ipamd://member/NAME` in it; host names are not compared between members, whose addresses change.
"""

from __future__ import annotations

import os
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipamd.core.names import MEMBER_URI, member_of

_DAY_S = 86_400


class TlsError(Exception):
    """The certificates cannot be used. One sentence."""


@dataclass(frozen=True)
class TlsFiles:
    """Where the certificate (with what stands between it and the authority), its key and the authority lie."""

    certificate: Path
    key: Path
    authority: Path


@dataclass(frozen=True)
class _Read:
    """What was read last: the contexts, when the certificate ends, and what the files looked like."""

    mutual_server: ssl.SSLContext
    open_server: ssl.SSLContext
    client: ssl.SSLContext
    ends_s: float
    authority_ends_s: float
    seen: tuple[tuple[int, int, int], ...]


class _Named(ssl.SSLObject):
    """A connection to a member, which ends before anything is sent if another one answers."""

    expected: str | None = None

    def do_handshake(self) -> None:
        """Shake hands. Raises SSLCertVerificationError where somebody else is there."""
        super().do_handshake()
        found = member_of(self.getpeercert())
        if found != self.expected and self.expected is not None:
            raise ssl.SSLCertVerificationError(f"{found or 'no member'} answers where {self.expected} should be")


class Following(ssl.SSLContext):
    """A context whose new connections take what was read last from the files."""

    source: Tls
    name: str
    expected: str | None = None

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """Begin a connection (asyncio and uvloop begin all of theirs here)."""
        context: ssl.SSLContext = getattr(self.source.read, self.name)
        connection = context.wrap_bio(*args, **kwargs)
        if isinstance(connection, _Named):
            connection.expected = self.expected
        return connection


class Tls:
    """The certificates of one member."""

    def __init__(self, files: TlsFiles, member: str) -> None:
        """Raises TlsError."""
        self._files, self._member = files, member
        self.read = _load(files, member)
        self.mutual_server = self._following("mutual_server", ssl.PROTOCOL_TLS_SERVER)
        """For those who must show a certificate: members on the Raft port."""

        self.open_server = self._following("open_server", ssl.PROTOCOL_TLS_SERVER)
        """For those who may show one: everybody on the API port."""

        self.client = self._following("client", ssl.PROTOCOL_TLS_CLIENT)
        """For connections to other members. The caller compares the name in their certificate."""

        self._clients: dict[str, ssl.SSLContext] = {}

    def client_of(self, member: str) -> ssl.SSLContext:
        """For connections to this member, and to nobody else."""
        found = self._clients.get(member)
        if found is None:
            found = self._clients[member] = self._following("client", ssl.PROTOCOL_TLS_CLIENT, member)
        return found

    def refresh(self) -> bool:
        """Read the files again if they have changed; whether they had. Raises TlsError, and keeps what it has."""
        if _seen(self._files) == self.read.seen:
            return False
        self.read = _load(self._files, self._member)
        return True

    def days_left(self, wall_s: float) -> int:
        """How many whole days the own certificate has left; negative: it has ended."""
        return days_until(self.read.ends_s, wall_s)

    def authority_days_left(self, wall_s: float) -> int:
        """The same of the authority: without it no certificate counts, new ones neither."""
        return days_until(self.read.authority_ends_s, wall_s)

    def _following(self, name: str, protocol: int, expected: str | None = None) -> ssl.SSLContext:
        context = Following(protocol)
        if name == "client":
            context.check_hostname = False
        context.source, context.name, context.expected = self, name, expected
        return context


def days_until(end_s: float, wall_s: float) -> int:
    """Whole days; negative: it is over."""
    return int((end_s - wall_s) // _DAY_S)


def authority_end_s(context: ssl.SSLContext) -> float:
    """When the last of the authorities ends that a context trusts, on the wall clock. It must trust one."""
    return max(ssl.cert_time_to_seconds(str(one["notAfter"])) for one in context.get_ca_certs())


def _load(files: TlsFiles, member: str) -> _Read:
    seen = _seen(files)
    server = _context(ssl.PROTOCOL_TLS_SERVER, files)
    server.verify_mode = ssl.CERT_REQUIRED
    optional = _context(ssl.PROTOCOL_TLS_SERVER, files)
    optional.verify_mode = ssl.CERT_OPTIONAL
    client = _context(ssl.PROTOCOL_TLS_CLIENT, files)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_REQUIRED
    client.sslobject_class = _Named
    own = _as_others_see_it(server, client, files)
    if member_of(own) != member:
        raise TlsError(
            f"tls-cert {files.certificate} is not the certificate of member {member}: it has no name"
            f" {MEMBER_URI}{member} (ipamctl tls issue {member} makes one)"
        )
    ends_s = ssl.cert_time_to_seconds(str(own["notAfter"]))
    return _Read(server, optional, client, ends_s, authority_end_s(client), seen)


def _context(protocol: int, files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
    except OSError as error:
        raise TlsError(
            f"tls-cert {files.certificate} with tls-key {files.key} cannot be used: {_why(error)}"
        ) from error
    try:
        context.load_verify_locations(files.authority)
    except OSError as error:
        raise TlsError(f"tls-ca {files.authority} cannot be used: {_why(error)}") from error
    return context


def _no_password() -> str:
    raise TlsError("tls-key must not need a password: nobody is there to type it at a restart")


def _as_others_see_it(server: ssl.SSLContext, client: ssl.SSLContext, files: TlsFiles) -> dict[str, Any]:
    """The own certificate, verified: the two contexts talk to each other in memory. Raises TlsError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    try:
        for side in (asking, answering, asking, answering):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    except ssl.SSLError as error:
        raise TlsError(
            f"tls-cert {files.certificate} does not hold before tls-ca {files.authority}: {_why(error)}"
        ) from error
    return asking.getpeercert() or {}


def _seen(files: TlsFiles) -> tuple[tuple[int, int, int], ...]:
    """What tells a file from its successor. Raises TlsError."""
    return tuple(_mark(path) for path in (files.certificate, files.key, files.authority))


def _mark(path: Path) -> tuple[int, int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - the three numbers at once
    except OSError as error:
        raise TlsError(f"{path} cannot be read: {error.strerror}") from error
    return found.st_ino, found.st_mtime_ns, found.st_size


def _why(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).lower().replace("_", " ")
    return error.strerror or str(error)
