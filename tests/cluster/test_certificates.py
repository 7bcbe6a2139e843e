"""Certificates of a running cluster: renewed without a restart, and what comes without the right one is not let in."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import time
from pathlib import Path

import pytest

from ipamctl.tls.authority import Wanted, issue
from tests.support.certificates import Shop
from tests.support.cluster import Cluster, MemberServer


def serial(member: MemberServer) -> str:
    """The serial number of the certificate that its API shows."""
    with (
        socket.create_connection(("127.0.0.1", member.port), 60) as sock,
        member.visitor.wrap_socket(sock, server_hostname="localhost") as connection,
    ):
        shown = connection.getpeercert()
    assert shown is not None
    return str(shown["serialNumber"])


def test_new_certificates_count_without_a_restart(three: Cluster, pool: str) -> None:
    before = {member.name: serial(member) for member in three}
    for member in three:
        three.shop.files(member.name)
        os.kill(member.pid, signal.SIGHUP)
    deadline = time.monotonic() + 60
    while any(serial(member) == before[member.name] for member in three):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    three["n3"].restart()
    assert [member.add(f"c{n}", f"t/{n}", pool=pool).code for n, member in enumerate(three)] == [0, 0, 0]


def test_a_bad_new_certificate_is_not_taken(three: Cluster, pool: str) -> None:
    member = three["n2"]
    before = serial(member)
    certificate = three.shop.directory / "n2.crt"
    kept = certificate.read_bytes()
    certificate.write_text("no certificate")
    os.kill(member.pid, signal.SIGHUP)
    deadline = time.monotonic() + 60
    while "the certificates are not taken" not in member.log:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert serial(member) == before
    assert member.add("c", "t/a", pool=pool).code == 0
    certificate.write_bytes(kept)


@pytest.mark.parametrize("who", ["nobody", "foreign", "client", "old-protocol"])
def test_the_raft_port_lets_in_members_only(three: Cluster, pool: str, tmp_path: Path, who: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(three.shop.ca)
    if who == "foreign":
        files = Shop(tmp_path / "foreign").files("n1")
        context.load_cert_chain(files.certificate, files.key)
    elif who in ("client", "old-protocol"):
        made = issue(three.shop.authority, Wanted("n1" if who != "client" else "bob", client=who == "client"))
        (tmp_path / "c.pem").write_bytes(made.certificate + made.key)
        context.load_cert_chain(tmp_path / "c.pem")
    if who == "old-protocol":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    term = three["n1"].status()["term"]
    for member in three:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            _talk_to(member, context)
    assert three["n1"].status()["term"] == term
    assert three["n1"].add(f"c{who}", "t/a", pool=pool).code == 0


def _talk_to(member: MemberServer, context: ssl.SSLContext) -> None:
    """Raises SSLError, ConnectionError once the Raft port has had enough."""
    with (
        socket.create_connection(("127.0.0.1", member.raft_port), 60) as sock,
        context.wrap_socket(sock, server_hostname="n1") as connection,
    ):
        connection.sendall(b"\0\0\0\1x")
        if not connection.recv(1):
            raise ConnectionError("closed")
