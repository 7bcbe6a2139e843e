"""No secret gets where it does not belong, in a whole run of the tests: this comes last, and looks at what they left."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from ipamd import system
from ipamd.service.tokens import new_secret
from tests.support.canary import SECRET, WATCH, Watch, check_answer, has_secret, search
from tests.support.server import Server

MANY_TESTS = 1000
"""From so many on the run is of the whole suite, and must have left much to look at."""


def test_a_secret_of_ours_looks_like_one_and_what_is_none_does_not() -> None:
    for secret in (SECRET, *(new_secret(system.random_bytes) for _ in range(500))):
        assert has_secret(secret.encode())
        assert has_secret(f"x={secret}\n".encode())
        assert not has_secret(secret[:-1].encode())
    for other in ("ipamd_" + "a_very_long_name_of_a_metric_that_nobody_has_", "ipamd_x", ""):
        assert not has_secret(other.encode())


def test_what_a_server_leaves_has_its_secret_in_one_file(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        token = server.token
        server.stop()
    seen = search(tmp_path)
    assert (seen.leaks, seen.secrets, seen.logs) == ([], 1, 1)
    assert seen.files > 3

    server.log_file.write_text(f'{{"msg": "Authorization: Bearer {token}"}}\n')
    (tmp_path / "data" / "state.db").write_bytes(b"\0" * 4096 + token.encode() + b"\0")
    (tmp_path / "copy").write_text("-----BEGIN PRIVATE KEY-----\n")
    leaks = search(tmp_path).leaks
    for path in (server.log_file, tmp_path / "data" / "state.db", tmp_path / "copy"):
        path.unlink()  # or the last test of the run would find them
    assert sorted(leak.removeprefix(f"{tmp_path}/") for leak in leaks) == [
        "copy: a private key",
        "data/state.db: a token",
        "server.log: a token",
    ]


def test_an_answer_may_tell_a_secret_in_one_place() -> None:
    told = f'{{"id": "t1", "secret": "{SECRET}"}}'.encode()
    check_answer("POST", "/v1/tokens", told)
    check_answer("POST", "/v1/tokens/enrol", told)
    check_answer("GET", "/v1/tokens", b'{"secret": null}')
    for method, target, raw in (
        ("GET", "/v1/tokens", told),
        ("POST", "/v1/pools", told),
        ("POST", "/v1/tokens", f'{{"name": "{SECRET}"}}'.encode()),
    ):
        with pytest.raises(AssertionError, match="has a secret"):
            check_answer(method, target, raw)


def test_a_log_line_and_a_command_line_are_seen() -> None:
    watch = Watch()
    line = logging.LogRecord("ipamd", logging.INFO, "x", 1, "token %s", (SECRET,), None)
    watch.emit(line)
    watch.audit("subprocess.Popen", ("ipamctl", ["ipamctl", "--token", SECRET], None, None))
    watch.audit("open", (SECRET, "r", 0))
    assert len(watch.leaks) == 2


def test_no_secret_was_left_anywhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The last test of a run, over all that the others logged, started, and wrote."""
    assert WATCH.leaks == []
    seen = search(tmp_path_factory.getbasetemp())
    assert seen.leaks == []
    if request.session.testscollected >= MANY_TESTS:
        assert seen.files > 1000
        assert seen.secrets > 50
        assert seen.logs > 50
    sys.stdout.write(f"looked at {seen.files} files, {seen.logs} logs; {seen.secrets} secrets lie in their own files\n")
