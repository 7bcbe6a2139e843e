"""Where a token may go, and whom to believe: secrets are never sent where others could read them."""

from __future__ import annotations

import socket
import ssl
import subprocess
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ipamctl.server import parse_server

POOLS: dict[str, Any] = {"items": [], "next": None}


class PeerAt:
    """A socket that is connected to an address; only this much of one is looked at."""

    def __init__(self, *address: Any) -> None:
        self.address = address

    def getpeername(self) -> tuple[Any, ...]:
        return self.address


@pytest.mark.parametrize(
    ("server", "peer", "keeps"),
    [
        ("http://n1", PeerAt("127.0.0.1", 7480), True),
        ("http://n1", PeerAt("::1", 7480, 0, 0), True),
        ("http://n1", PeerAt("192.0.2.1", 7480), False),
        ("http://localhost", PeerAt("fe80::1%eth0", 7480, 0, 2), False),
        ("https://n1", PeerAt("192.0.2.1", 7480), True),
        ("unix:/s", PeerAt(), True),
    ],
)
def test_a_token_goes_over_tls_or_stays_on_this_host(server, peer, keeps):
    assert parse_server(server).keeps_secrets(peer) is keeps


def outside_address() -> str | None:
    """An address of this host that is not loopback; None: it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
        except OSError:
            return None
        name: str = sock.getsockname()[0]
        return None if name.startswith("127.") else name


def test_a_token_is_not_sent_in_the_clear(ctl, make_peer, tmp_path):
    address = outside_address()
    if address is None:
        pytest.skip("this host has only loopback")
    token = tmp_path / "token"
    token.write_text("ipamd_s3cret")
    peer = make_peer(ThreadingHTTPServer, (address, 0), f"http://{address}")
    peer.on("GET", "/v1/pools", POOLS)
    done = ctl("--server", peer.address, "--token-file", str(token), "pool", "list")
    assert done.exit_code == 0
    assert "authorization" not in peer.last.headers
    assert f"the token is not sent to {peer.address}" in done.stderr


class TlsServer(ThreadingHTTPServer):
    """A server with the certificate that lies in its directory."""

    certificate: Path

    def get_request(self) -> tuple[socket.socket, Any]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.certificate.with_suffix(".key"))
        connection, address = super().get_request()
        return context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, *_args: Any) -> None:
        """A client that does not believe the certificate hangs up."""


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    path = tmp_path / "tls.crt"
    made = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    names = ("-subj", "/CN=n1", "-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", str(path.with_suffix(".key")), "-out", str(path))
    subprocess.run([*made, *names, *files], check=True, capture_output=True)
    return path


@pytest.mark.needs_openssl
def test_the_certificate_of_a_server_is_checked(ctl, make_peer, certificate):
    TlsServer.certificate = certificate
    peer = make_peer(TlsServer, ("127.0.0.1", 0), "https://127.0.0.1")
    peer.on("GET", "/v1/pools", POOLS)
    assert ctl("--server", peer.address, "--cacert", str(certificate), "pool", "list").exit_code == 0
    done = ctl("--server", peer.address, "pool", "list")
    assert done.exit_code == 3
    assert "certificate verify failed" in done.stderr.lower()
    assert len(peer.asked) == 1


def test_certificates_that_cannot_be_read_are_a_usage_error(ctl, tmp_path):
    (tmp_path / "ca").write_text("no certificate")
    for name in ("ca", "none"):
        done = ctl("--server", "https://127.0.0.1", "--cacert", str(tmp_path / name), "pool", "list")
        assert done.exit_code == 2
        assert f"{tmp_path}/{name}" in done.stderr
