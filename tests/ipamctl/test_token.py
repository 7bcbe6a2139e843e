"""The verbs of tokens: how long one lasts, where its secret goes, and what a list tells."""

from __future__ import annotations

import json
import stat

import pytest

MADE = {"id": "t1", "name": "ci", "role": "reader", "node": None, "created": "2026-01-01T00:00:00.000Z"}
MADE |= {"expires": None, "used": None, "secret": "ipamd_s3cret"}


@pytest.mark.parametrize(
    ("written", "ttl_s"), [("90d", 7_776_000), ("24h", 86_400), ("30m", 1800), ("5s", 5), ("7", 7), ("never", -1)]
)
def test_how_long_it_lasts_is_told_in_seconds(ask, peer, written, ttl_s):
    peer.on("POST", "/v1/tokens", MADE, status=201)
    assert ask("token", "create", "ci", "--role", "reader", "--ttl", written).exit_code == 0
    assert peer.last.body == {"name": "ci", "role": "reader", "ttl_s": ttl_s}


@pytest.mark.parametrize("written", ["0", "0d", "-1", "1w", "90 d", "ever", ""])
def test_what_is_no_time_is_a_mistake_of_the_caller(ask, peer, written):
    done = ask("token", "create", "ci", "--role", "reader", "--ttl", written)
    assert done.exit_code == 2
    assert "is no time" in done.stderr
    assert peer.asked == []


def test_the_server_decides_how_long_it_lasts_unless_told(ask, peer):
    peer.on("POST", "/v1/tokens", MADE, status=201)
    done = ask("token", "create", "ci", "--role", "reader")
    assert "ttl_s" not in peer.last.body
    assert "ipamd_s3cret" in done.stdout
    assert "not shown again" in done.stderr


def test_a_secret_goes_to_a_file_of_its_owner_and_not_to_the_screen(ask, peer, tmp_path):
    peer.on("POST", "/v1/tokens", MADE, status=201)
    file = tmp_path / "ci.token"
    done = ask("token", "create", "ci", "--role", "reader", "--secret-file", str(file), "-o", "json")
    assert done.exit_code == 0
    assert file.read_text() == "ipamd_s3cret\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "s3cret" not in done.stdout + done.stderr
    assert json.loads(done.stdout)["id"] == "t1"


def test_a_file_that_is_there_is_not_overwritten_and_nobody_is_asked(ask, peer, tmp_path):
    file = tmp_path / "ci.token"
    file.write_text("mine")
    done = ask("token", "create", "ci", "--role", "reader", "--secret-file", str(file))
    assert done.exit_code == 1
    assert "not overwritten" in done.stderr
    assert (file.read_text(), peer.asked) == ("mine", [])


def test_a_secret_that_cannot_be_kept_is_to_be_revoked(ask, peer, tmp_path):
    peer.on("POST", "/v1/tokens", MADE, status=201)
    (tmp_path / "file").write_text("")
    done = ask("token", "create", "ci", "--role", "reader", "--secret-file", str(tmp_path / "file" / "x"))
    assert done.exit_code == 1
    assert "revoke the token t1" in done.stderr


def test_a_list_tells_when_a_token_ends_and_when_it_was_used(ask, peer):
    row = {**MADE, "expires": "2026-04-01T00:00:00.000Z", "used": "2026-01-02T03:00:00.000Z"}
    del row["secret"]
    peer.on("GET", "/v1/tokens", {"items": [row], "next": None})
    done = ask("token", "list")
    titles, line = done.stdout.splitlines()[:2]
    assert titles.split() == ["ID", "NAME", "ROLE", "NODE", "CREATED", "EXPIRES", "USED"]
    assert "2026-04-01T00:00:00.000Z" in line
    assert "2026-01-02T03:00:00.000Z" in line
