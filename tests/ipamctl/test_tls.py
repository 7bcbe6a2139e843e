"""The group `tls`: an authority, certificates for members and clients, and renewing them."""

from __future__ import annotations

import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result
from cryptography import x509

from ipamctl.tls import authority

Ctl = Callable[..., Result]


@pytest.fixture
def tls(ctl: Ctl, tmp_path: Path) -> Ctl:
    """Runs a verb of the group in a directory of its own."""

    def run(*args: str) -> Result:
        return ctl("tls", *args, "--dir", str(tmp_path / "tls"))

    return run


def loaded(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def names(certificate: x509.Certificate) -> list[str]:
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in found]


def test_an_authority_and_a_member(tls: Ctl, tmp_path: Path) -> None:
    assert tls("init").exit_code == 0
    done = tls("issue", "n1", "--dns", "n1.example.org", "--ip", "192.0.2.1", "--ip", "2001:db8::1")
    assert done.exit_code == 0, done.stderr
    member, ca = loaded(tmp_path / "tls/n1.crt"), loaded(tmp_path / "tls/ca.crt")
    member.verify_directly_issued_by(ca)
    assert names(member) == ["ipamd://member/n1", "n1", "n1.example.org", "192.0.2.1", "2001:db8::1"]
    now = datetime.now(UTC)
    assert timedelta(days=729) < member.not_valid_after_utc - now <= timedelta(days=730)
    assert timedelta(days=3649) < ca.not_valid_after_utc - now <= timedelta(days=3650)
    assert stat.S_IMODE((tmp_path / "tls").stat().st_mode) == 0o700
    for file in (tmp_path / "tls").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_clients_certificate_names_no_member(tls: Ctl, tmp_path: Path) -> None:
    tls("init")
    assert tls("issue", "bob", "--client").exit_code == 0
    client = loaded(tmp_path / "tls/bob.crt")
    assert names(client) == ["ipamd://client/bob", "bob"]
    purposes = client.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [purpose._name for purpose in purposes] == ["clientAuth"]


def test_renewing_keeps_the_key_and_the_names(tls: Ctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls("init")
    with monkeypatch.context() as then:
        then.setattr(authority, "_now", lambda: datetime.now(UTC).replace(microsecond=0) - timedelta(days=700))
        tls("issue", "n1", "--ip", "192.0.2.1")
    old, key = loaded(tmp_path / "tls/n1.crt"), (tmp_path / "tls/n1.key").read_bytes()
    assert tls("renew", "n1").exit_code == 0
    new = loaded(tmp_path / "tls/n1.crt")
    assert (tmp_path / "tls/n1.key").read_bytes() == key
    assert (names(new), new.public_key()) == (names(old), old.public_key())
    assert new.not_valid_after_utc - old.not_valid_after_utc >= timedelta(days=699)


def test_a_certificate_never_outlives_its_authority(tls: Ctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = authority._now
    for days, refused in ((3650 - 100, False), (3650 + 1, True)):
        monkeypatch.setattr(authority, "_now", lambda days=days: real() - timedelta(days=days))
        tls("init")
        monkeypatch.setattr(authority, "_now", real)
        done = tls("issue", "n1")
        assert (done.exit_code == 1) is refused
        if refused:
            assert "has ended" in done.stderr
        else:
            assert (
                loaded(tmp_path / "tls/n1.crt").not_valid_after_utc
                == loaded(tmp_path / "tls/ca.crt").not_valid_after_utc
            )
        for file in (tmp_path / "tls").iterdir():
            file.unlink()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("issue", "n1"), "is there already"),
        (("issue", "ca"), "the authority's own name"),
        (("issue", "../x"), "is not a name"),
        (("issue", "x" * 65), "is not a name"),
        (("issue", "n2", "--ip", "n2.example"), "is not an IP address"),
        (("issue", "n2", "--dns", "a b"), "is not the name of a host"),
        (("renew", "n9"), "cannot be read"),
        (("renew", "ca"), "is none that ipamctl tls issue has made"),
        (("init",), "is there already"),
    ],
)
def test_refusals_are_one_sentence_and_change_nothing(
    tls: Ctl, tmp_path: Path, args: tuple[str, ...], sentence: str
) -> None:
    tls("init")
    tls("issue", "n1")
    before = {file: file.read_bytes() for file in (tmp_path / "tls").iterdir()}
    done = tls(*args)
    assert done.exit_code == 1
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert {file: file.read_bytes() for file in (tmp_path / "tls").iterdir()} == before


def test_without_an_authority_the_way_is_named(tls: Ctl) -> None:
    done = tls("issue", "n1")
    assert done.exit_code == 1
    assert "ipamctl tls init" in done.stderr


def test_a_key_of_another_authority_is_refused(tls: Ctl, tmp_path: Path) -> None:
    tls("init")
    (tmp_path / "tls/ca.key").write_bytes(authority.make_authority("other").key)
    done = tls("issue", "n1")
    assert done.exit_code == 1
    assert "does not belong to its certificate" in done.stderr
