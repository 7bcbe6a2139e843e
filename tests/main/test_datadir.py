"""The data directory: its mode, its owner, and files that are whole or not there."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ipamd.beginning import own_member
from ipamd.core.model import Role
from ipamd.datadir import (
    ADMIN_TOKEN_FILE,
    IDENTITY_FILE,
    DataDirError,
    Identity,
    claim,
    prepare,
    read_identity,
    rename_node,
)
from ipamd.founding import admin_secret, found_command
from ipamd.settings import Host, load

WHO = Identity("0f" * 16, "n1", "node1")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_made_for_this_user_alone(tmp_path: Path) -> None:
    prepare(tmp_path / "a" / "b")
    assert mode(tmp_path / "a" / "b") == 0o700


def test_an_open_one_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    prepare(tmp_path)
    assert mode(tmp_path) == 0o700


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(DataDirError, match="cannot be made or used"):
        prepare(tmp_path / "a")


def test_the_identity_is_made_once(tmp_path: Path) -> None:
    assert read_identity(tmp_path) is None
    assert claim(tmp_path, WHO) == WHO
    assert claim(tmp_path, Identity("another", "n1", "node1")) == WHO
    assert mode(tmp_path / IDENTITY_FILE) == 0o600


def test_another_member_is_refused(tmp_path: Path) -> None:
    claim(tmp_path, WHO)
    with pytest.raises(DataDirError, match="belongs to member n1, not to n2"):
        claim(tmp_path, Identity("x", "n2", "node1"))


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"member_id": "x"}', "\x00"])
def test_a_broken_identity_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / IDENTITY_FILE).write_text(content)
    with pytest.raises(DataDirError, match=IDENTITY_FILE):
        claim(tmp_path, WHO)


def test_a_draft_left_by_a_crash_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / f"{IDENTITY_FILE}.new").write_text("half")
    assert claim(tmp_path, WHO) == WHO
    assert [path.name for path in tmp_path.iterdir()] == [IDENTITY_FILE]


def test_a_renamed_node_is_kept(tmp_path: Path) -> None:
    claim(tmp_path, WHO)
    rename_node(tmp_path, "node2")
    assert read_identity(tmp_path) == Identity(WHO.member_id, "n1", "node2")


def test_the_admin_secret_is_on_disk_and_stays(tmp_path: Path) -> None:
    secret = admin_secret(tmp_path, lambda: "a secret of some length")
    assert (tmp_path / ADMIN_TOKEN_FILE).read_text() == f"{secret}\n"
    assert mode(tmp_path / ADMIN_TOKEN_FILE) == 0o600
    assert admin_secret(tmp_path, str) == secret == "a secret of some length"


@pytest.mark.parametrize("content", ["", "\n", "short\n", "ü" * 20])
def test_an_admin_token_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / ADMIN_TOKEN_FILE).write_text(content)
    with pytest.raises(DataDirError, match=ADMIN_TOKEN_FILE):
        admin_secret(tmp_path, str)


def test_a_cluster_is_founded_with_this_member_and_the_first_values() -> None:
    config = load({"cooldown_s": "9", "member_name": "n1"}, {}, Host("h", is_container=False))
    own = own_member(config, WHO)
    command = found_command(config, (own,), b"digest", 5, bytes)
    assert command.settings.cooldown_s == 9
    assert [(member.name, member.member_id, member.api) for member in command.members] == [
        ("n1", WHO.member_id, "http://127.0.0.1:7480")
    ]
    assert command.token is not None
    assert command.token.role is Role.ADMIN
    assert command.token.digest == b"digest"
