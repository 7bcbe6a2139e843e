"""The talk with servers: which is asked, with what, for how long, and how a run ends without an answer."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

POOLS: dict[str, Any] = {"items": [], "next": None}
PROBLEM = {"code": "unavailable", "detail": "no leader is known", "outcome": "none"}


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and says nothing, as a stopped process does."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"


@pytest.fixture
def black_hole() -> Iterator[str]:
    """A server whose queue of connections is full: packets to it are dropped, as behind a dead host."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    """An address where nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{sock.getsockname()[1]}"


def test_it_asks_over_tcp_and_over_a_unix_socket(ctl, peer, unix_peer):
    for server in (peer, unix_peer):
        server.on("GET", "/v1/pools", POOLS)
        done = ctl("--server", server.address, "pool", "list", "-o", "json")
        assert (done.exit_code, done.stderr) == (0, "")
        assert server.last.query == {"limit": "1000"}


def test_the_token_is_sent_and_the_deadline_is_told(ctl, peer, tmp_path):
    token = tmp_path / "token"
    token.write_text("ipamd_s3cret\n")
    peer.on("GET", "/v1/pools", POOLS)
    ctl("--server", peer.address, "--token-file", str(token), "--timeout", "40", "pool", "list")
    assert peer.last.headers["authorization"] == "Bearer ipamd_s3cret"
    assert 30_000 < int(peer.last.headers["ipamd-deadline-ms"]) <= 39_750


@pytest.mark.parametrize("text", ["", "two words", "a\nb"])
def test_a_file_that_holds_no_token_is_refused(ctl, peer, tmp_path, text):
    token = tmp_path / "token"
    token.write_text(text)
    done = ctl("--server", peer.address, "--token-file", str(token), "pool", "list")
    assert done.exit_code == 2
    assert "does not hold one token" in done.stderr
    assert peer.asked == []


def test_a_token_file_that_is_missing_is_named(ctl, tmp_path):
    done = ctl("--token-file", str(tmp_path / "none"), "pool", "list")
    assert done.exit_code == 2
    assert f"{tmp_path}/none" in done.stderr


def test_the_next_server_is_asked_when_one_is_away(ctl, peer, closed):
    peer.on("GET", "/v1/pools", POOLS)
    assert ctl("--server", closed, "--server", peer.address, "pool", "list").exit_code == 0


def test_a_silent_server_costs_only_its_share_of_the_time(ctl, peer, silent):
    peer.on("GET", "/v1/pools", POOLS)
    begin = time.monotonic()
    done = ctl("--timeout", "4", "--server", silent, "--server", peer.address, "pool", "list")
    assert done.exit_code == 0
    assert 1.9 < time.monotonic() - begin < 3.6


def test_a_host_behind_a_black_hole_costs_a_second(ctl, peer, black_hole):
    peer.on("GET", "/v1/pools", POOLS)
    begin = time.monotonic()
    done = ctl("--server", black_hole, "--server", peer.address, "pool", "list")
    assert done.exit_code == 0
    assert 0.9 < time.monotonic() - begin < 4.5, "half of ten seconds is what one costs that is connected and silent"


def test_a_write_is_repeated_at_the_next_server_under_the_same_key(ctl, peer, other_peer):
    peer.refuses("POST", "/v1/pools", 503, **PROBLEM)
    other_peer.on("POST", "/v1/pools", {"name": "p", "space": "default", "ranges": []}, status=201)
    done = ctl(
        "--server", peer.address, "--server", other_peer.address, "pool", "create", "p", "--subnet", "10.0.0.0/24"
    )
    assert done.exit_code == 0
    assert peer.last.headers["idempotency-key"] == other_peer.last.headers["idempotency-key"]
    assert peer.last.body == other_peer.last.body == {"name": "p", "subnet": "10.0.0.0/24"}


def test_two_writes_have_two_keys_and_a_read_has_none(ask, peer):
    peer.on("DELETE", "/v1/pools/p", {"stranded": []})
    peer.on("GET", "/v1/pools", POOLS)
    for args in (("pool", "delete", "p"), ("pool", "delete", "p"), ("pool", "list")):
        ask(*args)
    first, second, third = peer.asked
    assert first.headers["idempotency-key"] != second.headers["idempotency-key"]
    assert "idempotency-key" not in third.headers


def test_without_an_answer_all_that_was_tried_is_named(ctl, peer, closed, tmp_path):
    peer.refuses("GET", "/v1/pools", 503, **PROBLEM)
    missing = f"unix:{tmp_path}/none.sock"
    done = ctl("--server", closed, "--server", missing, "--server", peer.address, "pool", "list")
    assert done.exit_code == 3
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    for part in (f"{closed} (connection refused)", f"{missing} (no such file or directory)", "(no leader is known)"):
        assert part in done.stderr


def test_when_nobody_listens_it_asks_whether_ipamd_runs(ctl, closed):
    assert "is ipamd running there?" in ctl("--server", closed, "pool", "list").stderr


def test_a_silent_server_ends_the_run_in_time(ctl, silent):
    begin = time.monotonic()
    done = ctl("--timeout", "0.4", "--server", silent, "pool", "list")
    assert (done.exit_code, time.monotonic() - begin < 8) == (3, True), "ten seconds are the usual time"
    assert f"{silent} (timed out)" in done.stderr


@pytest.mark.parametrize(("outcome", "is_said"), [("none", False), ("unknown", True)])
def test_an_unknown_outcome_of_a_write_is_said(ask, peer, outcome, is_said):
    peer.refuses("DELETE", "/v1/pools/p", 503, "unavailable", "time ran out", outcome=outcome)
    done = ask("pool", "delete", "p")
    assert done.exit_code == 3
    assert ("not known whether the change was made" in done.stderr) is is_said


def test_a_write_that_got_no_answer_may_have_been_made(ctl, silent, peer):
    peer.refuses("DELETE", "/v1/pools/p", 503, **PROBLEM)
    done = ctl("--timeout", "1", "--server", silent, "--server", peer.address, "pool", "delete", "p")
    assert "not known whether the change was made" in done.stderr


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [(400, "invalid_request", 1), (401, "unauthorized", 1), (403, "forbidden", 1), (404, "pool_not_found", 4),
     (409, "pool_in_use", 1), (410, "gone", 1), (429, "too_many_requests", 3), (500, "internal", 3),
     (503, "unavailable", 3)],
)  # fmt: skip
def test_each_refusal_has_its_exit_status_and_one_line(ask, peer, status, code, exit_code):
    peer.refuses("GET", "/v1/pools/p", status, code, "the pool p\nis \x1b[31mred")
    done = ask("pool", "show", "p")
    assert (done.exit_code, done.stdout) == (exit_code, "")
    assert done.stderr.count("\n") == 1
    assert "the pool p\\x0ais \\x1b[31mred" in done.stderr


def test_what_is_no_ipamd_server_is_no_answer(ask, peer):
    peer.on("GET", "/v1/pools/p", b"<html>404</html>", status=404)
    done = ask("pool", "show", "p")
    assert done.exit_code == 3
    assert "it is no ipamd server" in done.stderr


def test_pages_are_joined(ask, peer):
    peer.on("GET", "/v1/tokens", {"items": [{"id": "a"}], "next": "c1"}, {"items": [{"id": "b"}], "next": None})
    done = ask("token", "list", "-o", "json")
    assert json.loads(done.stdout) == {"items": [{"id": "a"}, {"id": "b"}], "next": None}
    assert [asked.query for asked in peer.asked] == [{"limit": "1000"}, {"limit": "1000", "cursor": "c1"}]


def test_a_limit_ends_the_list_and_tells_where_it_goes_on(ask, peer):
    peer.on("GET", "/v1/tokens", {"items": [{"id": "a"}, {"id": "b"}], "next": "c2"})
    done = ask("token", "list", "--limit", "2", "--cursor", "c0", "-o", "yaml")
    assert done.stdout == "items:\n- id: a\n- id: b\nnext: c2\n"
    assert [asked.query for asked in peer.asked] == [{"limit": "2", "cursor": "c0"}]


def test_stale_reads_are_asked_for(ask, peer):
    peer.on("GET", "/v1/pools", POOLS)
    ask("--stale", "pool", "list")
    assert peer.last.query["stale"] == "ok"


def test_names_are_quoted_in_paths(ask, peer):
    ask("reservation", "show", "p", "blue:default/a?b%#ü")
    assert peer.last.path == "/v1/reservations/p/blue%3Adefault%2Fa%3Fb%25%23%C3%BC"


def test_arguments_that_are_no_utf8_reach_the_server_as_they_are(ask, peer):
    ask("pool", "show", "a\udcff")
    assert peer.last.path == "/v1/pools/a%FF"


@pytest.mark.parametrize(
    "text",
    ["n1", "ftp://n1", "http://", "http://n1:x", "http://n1/path", "http://u:p@n1", "unix:relative", "http://[::1"],
)
def test_a_bad_server_is_a_usage_error(ctl, text):
    done = ctl("--server", text, "pool", "list")
    assert done.exit_code == 2
    assert text in done.stderr


def test_flag_wins_over_environment_and_that_over_the_file(ctl, peer, closed, tmp_path):
    peer.on("GET", "/v1/pools", POOLS)
    config = tmp_path / "config" / "ipamctl" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'server = "{closed}"\noutput = "yaml"\ntimeout = 2\n')
    assert ctl("pool", "list").exit_code == 3
    assert ctl("pool", "list", env={"IPAMCTL_SERVER": peer.address}).stdout == "items: []\nnext: null\n"
    assert ctl("--server", peer.address, "-o", "json", "pool", "list", env={"IPAMCTL_SERVER": closed}).exit_code == 0
    assert int(peer.last.headers["ipamd-deadline-ms"]) < 2000


@pytest.mark.parametrize(
    ("text", "part"),
    [("sever = 'x'", "unknown key 'sever'"), ("server = ", "cannot be read"), ("timeout = 'x'", "'x'")],
)
def test_a_bad_configuration_file_is_a_usage_error(ctl, tmp_path, text, part):
    config = tmp_path / "bad.toml"
    config.write_text(text)
    done = ctl("--config", str(config), "pool", "list")
    assert done.exit_code == 2
    assert part in done.stderr


def test_a_configuration_file_that_was_named_must_be_there(ctl, tmp_path):
    assert ctl("--config", str(tmp_path / "none.toml"), "pool", "list").exit_code == 2


def test_without_a_server_the_node_socket_is_asked(ctl):
    if Path("/run/ipamd/cni.sock").exists():
        pytest.skip("a server runs on this host")
    assert "unix:/run/ipamd/cni.sock" in ctl("pool", "list").stderr


def test_without_a_leader_a_stale_read_is_made_and_said(ask, peer):
    peer.headers = {"Ipamd-Index": "17", "Ipamd-Stale": "true"}
    problem = (503, {**PROBLEM, "status": 503})
    peer.table["GET", "/v1/cluster"] = [problem, (200, {"leader": None, "members": []})]
    done = ask("cluster", "status", "-o", "json")
    assert [asked.query for asked in peer.asked] == [{}, {"stale": "ok"}]
    assert done.exit_code == 5
    assert done.stderr.count("\n") == 1
    assert "no leader answers" in done.stderr
    assert "log index 17" in done.stderr


def test_other_reads_do_not_fall_back(ask, peer):
    peer.refuses("GET", "/v1/pools/p", 503, **PROBLEM)
    assert ask("pool", "show", "p").exit_code == 3
    assert len(peer.asked) == 1
