"""The server's certificates: which are taken, who may connect, and new files without a restart."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ipamctl.tls.authority import Wanted, issue, make_authority
from ipamd.core.names import member_of
from ipamd.tls import Tls, TlsError
from tests.support.certificates import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


async def talk(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[str | None, str | None, str]:
    """One connection; whom each side sees, and the protocol."""
    seen: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.set_result(member_of(writer.get_extra_info("peercert")))
        writer.write(await reader.read(1))
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname="any")
        writer.write(b"x")
        if await reader.read(1) != b"x":
            raise ConnectionError("closed")
        member, version = member_of(writer.get_extra_info("peercert")), writer.get_extra_info("ssl_object").version()
        writer.close()
        return await seen, member, version


async def test_members_know_each_other(shop: Shop) -> None:
    one, two = Tls(shop.files("n1"), "n1"), Tls(shop.files("n2"), "n2")
    assert await talk(one.mutual_server, two.client) == ("n2", "n1", "TLSv1.3")


async def test_a_stranger_may_connect_to_the_api_and_is_no_member(shop: Shop) -> None:
    one = Tls(shop.files("n1", Wanted("n1", ip=["127.0.0.1"])), "n1")
    stranger = ssl.create_default_context(cafile=str(shop.directory / "ca.crt"))
    stranger.check_hostname = False
    assert (await talk(one.open_server, stranger))[0] is None


@contextmanager
def closed() -> Iterator[None]:
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        yield


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_who_has_no_certificate_of_this_authority_is_closed(shop: Shop, tmp_path: Path) -> None:
    one = Tls(shop.files("n1"), "n1")
    foreign = Shop(tmp_path / "foreign")
    other = Tls(foreign.files("n2"), "n2")
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nobody.load_verify_locations(shop.directory / "ca.crt")
    nobody.check_hostname = False
    with closed():
        await talk(one.mutual_server, nobody)
    with closed():
        await talk(one.mutual_server, other.client)
    with closed():
        await talk(other.open_server, one.client)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_another_member_than_the_one_wanted_is_not_spoken_to(shop: Shop) -> None:
    one, two = Tls(shop.files("n1"), "n1"), Tls(shop.files("n2"), "n2")
    assert await talk(one.mutual_server, two.client_of("n1")) == ("n2", "n1", "TLSv1.3")
    assert two.client_of("n1") is two.client_of("n1")
    with pytest.raises(ssl.SSLCertVerificationError, match="n1 answers where n3 should be"):
        await talk(one.mutual_server, two.client_of("n3"))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_clients_certificate_cannot_answer_for_a_member(shop: Shop) -> None:
    files = shop.files("bob", Wanted("bob", client=True))
    with pytest.raises(TlsError, match="does not hold"):
        Tls(files, "bob")
    pretending = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pretending.load_cert_chain(files.certificate, files.key)
    with closed():
        await talk(pretending, Tls(shop.files("n1"), "n1").client)


def test_an_old_protocol_is_refused(shop: Shop) -> None:
    own = Tls(shop.files("n1"), "n1")
    for context in (own.read.client, own.read.mutual_server, own.read.open_server):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        ("other member", "is not the certificate of member n2"),
        ("no authority", "cannot be read"),
        ("garbage authority", "tls-ca .* cannot be used"),
        ("garbage certificate", "cannot be used"),
        ("foreign key", "cannot be used"),
        ("foreign authority", "does not hold before tls-ca"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(shop: Shop, spoil: str, sentence: str) -> None:
    files, member = shop.files("n1"), "n1"
    match spoil:
        case "other member":
            member = "n2"
        case "no authority":
            files.authority.unlink()
        case "garbage authority":
            files.authority.write_text("no")
        case "garbage certificate":
            files.certificate.write_text("no")
        case "foreign key":
            files.key.write_bytes(issue(shop.authority, Wanted("n3")).key)
        case _:
            files.authority.write_bytes(make_authority("other").certificate)
    with pytest.raises(TlsError, match=sentence) as refused:
        Tls(files, member)
    assert "\n" not in str(refused.value)


async def test_new_files_count_without_a_restart(shop: Shop) -> None:
    one, two = Tls(shop.files("n1"), "n1"), Tls(shop.files("n2"), "n2")
    assert not one.refresh()
    before = one.read.ends_s
    later = make_authority("later")
    for owner, name in ((one, "n1"), (two, "n2")):
        (shop.directory / "ca.crt").write_bytes(later.certificate)
        shop.files(name, authority=later)
        assert owner.refresh()
    assert await talk(one.mutual_server, two.client) == ("n2", "n1", "TLSv1.3")
    assert one.read.ends_s >= before


def test_bad_new_files_change_nothing(shop: Shop) -> None:
    files = shop.files("n1")
    own = Tls(files, "n1")
    kept = own.read
    files.certificate.write_text("half")
    with pytest.raises(TlsError):
        own.refresh()
    assert own.read is kept
    files.key.unlink()
    with pytest.raises(TlsError):
        own.refresh()
    assert own.read is kept


def test_days_left(shop: Shop) -> None:
    own = Tls(shop.files("n1"), "n1")
    assert own.days_left(own.read.ends_s) == 0
    assert own.days_left(own.read.ends_s - 86_400 * 730) == 730
    assert own.days_left(own.read.ends_s + 1) == -1


def test_only_one_member_uri_names_a_member() -> None:
    uri = ("URI", "ipamd://member/n1")
    assert member_of({"subjectAltName": (("DNS", "x"), uri)}) == "n1"
    for names in ((), (("DNS", "ipamd://member/n1"),), (uri, ("URI", "ipamd://member/n2")), (("URI", "x"),)):
        assert member_of({"subjectAltName": names}) is None
    assert member_of({}) is None
    assert member_of(None) is None
