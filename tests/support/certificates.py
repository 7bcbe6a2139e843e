"""Owns certificates for tests: an authority, and what it issues, as files in a directory."""

from __future__ import annotations

import ssl
from pathlib import Path

from ipamctl.tls.authority import Pair, Wanted, issue, make_authority
from ipamd.tls import Tls, TlsFiles


class Shop:
    """An authority, and files with what it issues."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.authority = make_authority("ipamd")
        self.ca.write_bytes(self.authority.certificate)

    @property
    def ca(self) -> Path:
        """The authority's certificate."""
        return self.directory / "ca.crt"

    def files(self, name: str, wanted: Wanted | None = None, authority: Pair | None = None) -> TlsFiles:
        """A new certificate, by default a member's that is reached on loopback."""
        made = issue(authority or self.authority, wanted or Wanted(name, ("localhost",), ("127.0.0.1", "::1")))
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        certificate.write_bytes(made.certificate)
        key.write_bytes(made.key)
        return TlsFiles(certificate, key, self.ca)

    def member(self, name: str) -> Tls:
        """A member's contexts."""
        return Tls(self.files(name), name)

    def visitor(self) -> ssl.SSLContext:
        """The context of somebody who has no certificate."""
        return ssl.create_default_context(cafile=str(self.ca))
