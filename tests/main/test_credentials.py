"""What an agent shows and trusts: read again when the files change, and kept when they get worse."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipamd.credentials import CredentialsError, token_in, trust_in
from tests.support.certificates import Shop


def test_without_files_there_is_nothing_to_show_and_the_systems_trust(tmp_path: Path) -> None:
    assert token_in(None)() is None
    assert trust_in(None)() is None


def test_a_new_token_is_taken_and_a_bad_one_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "token"
    file.write_text("ipamd_one\n")
    token = token_in(file)
    assert token() == "ipamd_one"
    file.write_text("ipamd_second\n")
    assert token() == "ipamd_second"
    for spoil in (lambda: file.write_text("two words"), file.unlink):
        spoil()
        assert token() == token() == "ipamd_second"
    said = [line.getMessage() for line in caplog.records if "serves on" in line.getMessage()]
    assert len(said) == len(set(said)) == 2, "each once, not at each call"
    file.write_text("ipamd_third\n")
    assert token() == "ipamd_third"


def test_a_token_that_others_can_read_is_warned_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "token"
    file.write_text("ipamd_one\n")
    file.chmod(0o640)
    token = token_in(file)
    assert token() == token() == "ipamd_one"
    (line,) = caplog.records
    assert "can be read by others" in line.getMessage()
    caplog.clear()
    file.chmod(0o600)
    assert token_in(file)() == "ipamd_one"
    assert not caplog.records


def test_a_new_authority_is_taken(tmp_path: Path) -> None:
    first, second = Shop(tmp_path / "a"), Shop(tmp_path / "b")
    trust = trust_in(first.ca)
    before = trust()
    assert before is not None
    assert trust() is before
    first.ca.write_bytes(second.ca.read_bytes() + b"\n")
    after = trust()
    assert after is not None
    assert after.get_ca_certs() == second.visitor().get_ca_certs() != before.get_ca_certs()


@pytest.mark.parametrize("text", ["", "two words", "umläut"])
def test_a_start_with_a_bad_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    with pytest.raises(CredentialsError, match="holds no token"):
        token_in(tmp_path / "token")
    (tmp_path / "ca").write_text(text)
    with pytest.raises(CredentialsError, match=r"tls-ca .* cannot be used"):
        trust_in(tmp_path / "ca")
