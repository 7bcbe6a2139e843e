"""Following events: over servers that end, refuse, are away, or are new; and times as people give them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import Result

from ipamctl.times import as_asked, as_local, read_time
from tests.ipamctl.conftest import Ctl, serving


class Streams:
    """A server of event streams: for each request the next of its answers; asked for more it has none."""

    def __init__(self, *answers: bytes | tuple[int, bytes]) -> None:
        self.answers = list(answers)
        self.afters: list[str] = []
        self.queries: list[dict[str, list[str]]] = []

    def next(self) -> bytes | tuple[int, bytes]:
        return self.answers.pop(0) if self.answers else (503, b'{"detail":"no more","code":"unavailable"}')


def event(index: int, **more: object) -> bytes:
    shown = {"index": index, "at": "2030", "kind": "bound", "by": "socket", "request_id": "r", **more}
    return b"id: %d\ndata: %s\n\n" % (index, json.dumps(shown).encode())


@contextmanager
def served(streams: Streams) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            streams.afters.append(query["after"][0])
            streams.queries.append(query)
            answer = streams.next()
            status, body = (200, answer) if isinstance(answer, bytes) else answer
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_address[1]}"


def follow(ctl: Ctl, *servers: str, args: tuple[str, ...] = ()) -> Result:
    return ctl(*(one for server in servers for one in ("--server", server)), "events", "--follow", *args)


def indexes(done: Result) -> list[int]:
    return [json.loads(line)["index"] for line in done.stdout.splitlines()]


def test_the_next_server_goes_on_where_one_ended(ctl: Ctl) -> None:
    cut = event(4)[:-9]  # it never came whole: it is asked for again
    one, two = Streams(b":\n\n" + event(1) + event(2) + cut), Streams(event(3) + event(4), event(5))
    with served(one) as first, served(two) as second:
        done = follow(ctl, first, second, args=("--limit", "5", "-o", "json"))
    assert done.exit_code == 0, done.output
    assert indexes(done) == [1, 2, 3, 4, 5]
    assert (one.afters, two.afters) == (["0", "4"], ["2", "4"])


def test_an_id_without_an_event_moves_on(ctl: Ctl) -> None:
    streams = Streams(b"retry: 1000\nid: 70\n\n" + event(75) + b"id: 90\n\n", event(91))
    with served(streams) as server:
        done = follow(ctl, server, args=("--new", "--limit", "2", "-o", "json", "--pool", "p", "--kind", "bound"))
    assert indexes(done) == [75, 91]
    assert streams.afters == ["latest", "90"]
    assert (streams.queries[0]["pool"], streams.queries[0]["kind"]) == (["p"], ["bound"])


def test_one_event_is_one_line_that_nothing_breaks(ctl: Ctl) -> None:
    with served(Streams(event(1, pod_ref="d/a\nb\x1b[2J"))) as server:
        done = follow(ctl, server, args=("--limit", "1"))
    assert done.stdout == "1  2030  bound  -  d/a\\x0ab\\x1b[2J  -  -  socket  r  -\n"


def test_what_is_gone_ends_it(ctl: Ctl) -> None:
    gone = b'{"status":410,"code":"gone","detail":"events up to 8 are kept no longer","oldest":9}'
    with served(Streams(event(1), (410, gone))) as server:
        done = follow(ctl, server)
    assert (done.exit_code, done.stdout.count("\n")) == (1, 1)
    assert "kept no longer" in done.stderr


def test_where_nobody_answers_it_ends_soon(ctl: Ctl) -> None:
    began = time.monotonic()
    done = follow(ctl, "http://127.0.0.1:1", "http://127.0.0.1:2")
    assert (done.exit_code, time.monotonic() - began < 60) == (3, True)
    assert "is ipamd running there?" in done.stderr


def test_a_server_that_comes_back_is_found(ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipamctl.following._PAUSES_S", (0.01, 0.02))
    streams = Streams(event(1), (503, b"{}"), (503, b"{}"), (503, b"{}"), event(2))
    with served(streams) as server:
        done = follow(ctl, server, args=("--limit", "2", "-o", "json"))
    assert indexes(done) == [1, 2]
    assert done.stderr.count("tried again") == 1


def test_a_server_that_says_nothing_is_left(ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipamctl.following.SILENCE_S", 0.3)
    release = threading.Event()

    class Silent(Streams):
        def next(self) -> bytes:
            release.wait(60)
            return b""

    with served(Silent()) as silent, served(Streams(event(1))) as other:
        began = time.monotonic()
        done = follow(ctl, silent, other, args=("--limit", "1", "-o", "json"))
        took_s = time.monotonic() - began
        release.set()
    assert indexes(done) == [1]
    assert took_s < 30


def test_whoever_is_content_with_one_servers_state_says_so(ctl: Ctl) -> None:
    streams = Streams(event(1))
    with served(streams) as server:
        ctl("--stale", "--server", server, "events", "--follow", "--limit", "1")
    assert streams.queries[0]["stale"] == ["ok"]


def test_new_goes_with_follow_alone(ctl: Ctl) -> None:
    assert ctl("events", "--new").exit_code == 2
    assert ctl("events", "--follow", "--new", "--after", "3").exit_code == 2


NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def _in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_in_berlin")
@pytest.mark.parametrize(
    ("text", "asked", "local"),
    [
        ("2026-11-24T09:00:00Z", "2026-11-24T09:00:00.000Z", "2026-11-24 10:00:00 CET"),
        ("2026-11-24T09:00:00.5+02:00", "2026-11-24T07:00:00.500Z", "2026-11-24 08:00:00 CET"),
        ("2026-11-24 09:00:00+01:00", "2026-11-24T08:00:00.000Z", "2026-11-24 09:00:00 CET"),
        ("2026-11-24 09:00", "2026-11-24T08:00:00.000Z", "2026-11-24 09:00:00 CET"),
        ("2026-07-24 09:00", "2026-07-24T07:00:00.000Z", "2026-07-24 09:00:00 CEST"),
        ("2026-11-24", "2026-11-23T23:00:00.000Z", "2026-11-24 00:00:00 CET"),
        ("-7d", "2026-11-23T12:00:00.000Z", "2026-11-23 13:00:00 CET"),
        ("-1w2d3h4m5s", "2026-11-21T08:55:55.000Z", "2026-11-21 09:55:55 CET"),
        ("-90m", "2026-11-30T10:30:00.000Z", "2026-11-30 11:30:00 CET"),
    ],
)
def test_times_are_read(text: str, asked: str, local: str) -> None:
    at = read_time(text, NOW)
    assert (as_asked(at), as_local(at)) == (asked, local)


@pytest.mark.parametrize("text", ["", "-", "-7", "7d", "-7x", "-d", "now", "2026-02-30", "09:00", f"-{10**9}w"])
def test_what_is_no_time_is_refused(ctl: Ctl, text: str) -> None:
    done = ctl("who", "10.0.0.5", "--at", text)
    assert done.exit_code == 2, done.output
    assert "is no time" in done.stderr


def test_times_without_a_name_have_their_offset() -> None:
    at = datetime(2026, 11, 24, 9, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert as_asked(at) == "2026-11-24T03:30:00.000Z"
