"""Owns the talk with the servers: one request, tried at one server after the other, one definite answer or a failure.

A write carries an Idempotency-Key, the same at each server, so that trying the next one can never do it twice.
"""

from __future__ import annotations

import http.client
import io
import json
import ssl
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

from ipamctl.exits import NotFound, Refused, Unavailable, note
from ipamctl.server import Server

CONNECT_S = 1.0
"""For each server; a host behind a black hole costs no more."""

PAGE = 1000
_CHUNK_BYTES = 1 << 20
_SILENCE_S = 60.0
"""How long a server that is sending a file may say nothing."""

_MARGIN_S = 0.25
"""A server is told a deadline that much before ours, so that it can still say why it had no answer."""

Query = Mapping[str, str | int | bool | None]


def route(*segments: str) -> str:
    """A path of the API; names are quoted, `/` in a pod's name too."""
    return "/v1/" + "/".join(quote(segment.encode("utf-8", "surrogateescape"), safe="") for segment in segments)


def target_of(path: str, query: Query) -> str:
    """Path and query as they are asked for."""
    given = {key: _query_text(value) for key, value in query.items() if value is not None and value is not False}
    return f"{path}?{urlencode(given, quote_via=quote)}" if given else path


def _query_text(value: str | int | bool | None) -> bytes:
    text = "true" if value is True else str(value)
    return text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Answer:
    """What a server answered: the log index it reflects, and the JSON of the body."""

    server: Server
    status: int
    index: str | None
    value: Any


@dataclass(frozen=True)
class _Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes | None
    sent: Callable[[int], None] | None = None
    into: BinaryIO | None = None
    """Where the body of a good answer goes, whatever it is; what an earlier try has left there is replaced."""

    def open_body(self) -> bytes | BinaryIO | None:
        """The body; as a file that tells how far it was read, where somebody wants to know."""
        if self.body is None or self.sent is None:
            return self.body
        return _Watched(self.body, self.sent)


class _Watched(io.BytesIO):
    def __init__(self, data: bytes, sent: Callable[[int], None]) -> None:
        super().__init__(data)
        self._sent, self._size_bytes = sent, len(data)

    def read(self, size: int | None = -1, /) -> bytes:
        """The next part of it."""
        data = super().read(size)
        self._sent(self.tell() * 100 // max(self._size_bytes, 1))
        return data


@dataclass
class _Attempts:
    """What was tried, for the sentence at the end."""

    reasons: list[str] = field(default_factory=list)
    heard: bool = False
    unknown: bool = False
    """Whether one of them may have made the change all the same."""

    def failure(self, method: str) -> Unavailable:
        sentence = "no answer from " + ", ".join(self.reasons)
        if not self.heard:
            sentence += ": is ipamd running there?"
        if self.unknown and method != "GET":
            sentence += "; it is not known whether the change was made: look before you repeat it"
        return Unavailable(sentence, heard=self.heard)


class Client:
    """Asks the servers in the order given."""

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        token: str | None = None,
        trust: ssl.SSLContext | None = None,
        timeout_s: float = 10.0,
        stale: bool = False,
    ) -> None:
        self._servers = tuple(servers)
        self._token = token
        self._trust = trust
        self._timeout_s = timeout_s
        self._stale = stale

    @property
    def servers(self) -> Sequence[Server]:
        """The servers, in the order given."""
        return self._servers

    @property
    def stale(self) -> bool:
        """Whether what one server has will do."""
        return self._stale

    def connected(self, server: Server, timeout_s: float) -> tuple[http.client.HTTPConnection, dict[str, str]]:
        """A connection to a server, and the headers that say who asks there. Raises OSError."""
        connection = server.connection(CONNECT_S, self._trust)
        try:
            connection.connect()
            connection.sock.settimeout(timeout_s)
            return connection, self._identification(server, connection)
        except OSError:
            connection.close()
            raise

    def get(self, path: str, query: Query | None = None) -> Any:
        """Read. Raises Failure."""
        return self._read(path, query or {}, self._timeout_s).value

    def get_with_index(self, path: str) -> tuple[int, Any]:
        """Read, and the log index that the answer reflects. Raises Failure."""
        answer = self._read(path, {}, self._timeout_s)
        return int(answer.index or 0), answer.value

    def get_or_stale(self, path: str, query: Query | None = None) -> Any:
        """Read; without a leader read a server's own state and say so on stderr, once. Raises Failure."""
        if self._stale:
            return self.get(path, query)
        try:
            return self._read(path, query or {}, self._timeout_s / 2).value
        except Unavailable as away:
            if not away.heard:
                raise
        self._stale = True
        answer = self._read(path, query or {}, self._timeout_s / 2)
        where = f"{answer.server.text} has at log index {answer.index or 'unknown'}"
        note(f"warning: no leader answers; this is what {where}, and it may be old")
        return answer.value

    def download(self, path: str, into: BinaryIO, *, at_least_s: float = 0.0) -> Mapping[str, str]:
        """Read what is no JSON into a file; the headers of the answer. Raises Failure, OSError."""
        query: Query = {"stale": "ok"} if self._stale else {}
        request = _Request("GET", target_of(path, query), {}, None, into=into)
        found: Mapping[str, str] = self._ask(request, max(self._timeout_s, at_least_s)).value
        return found

    def pages(
        self,
        path: str,
        filters: Query | None = None,
        *,
        after: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        or_stale: bool = False,
    ) -> Any:
        """A list with its pages joined, up to `limit` items; `next` is null at the end of the list. Raises Failure.

        `after` says where the first page begins, where the list knows of it; from then on the cursor does. `or_stale`:
        as `get_or_stale` reads.
        """
        get = self.get_or_stale if or_stale else self.get
        items: list[Any] = []
        while True:
            wanted = PAGE if limit is None else min(PAGE, limit - len(items))
            place: Query = {"after": after} if cursor is None else {"cursor": cursor}
            page = get(path, {**(filters or {}), "limit": wanted, **place})
            items += page["items"]
            cursor = page["next"]
            if cursor is None or (limit is not None and len(items) >= limit):
                return {**page, "items": items, "next": cursor}

    def write(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Query | None = None,
        *,
        at_least_s: float = 0.0,
        sent: Callable[[int], None] | None = None,
    ) -> Any:
        """Change something, with that much time at least. `sent` is told how much of the body is out, in percent.

        Raises Failure.
        """
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = _Request(method, target_of(path, query or {}), headers, data, sent)
        return self._ask(request, max(self._timeout_s, at_least_s)).value

    def _read(self, path: str, query: Query, timeout_s: float) -> Answer:
        if self._stale:
            query = {**query, "stale": "ok"}
        return self._ask(_Request("GET", target_of(path, query), {}, None), timeout_s)

    def _ask(self, request: _Request, timeout_s: float) -> Answer:
        deadline_s = time.monotonic() + timeout_s
        attempts = _Attempts()
        for position, server in enumerate(self._servers):
            share_s = (deadline_s - time.monotonic()) / (len(self._servers) - position)
            if share_s <= 0:
                attempts.reasons.append(f"{server.text} (no time was left)")
                continue
            answer = self._try(server, request, share_s, attempts)
            if answer is not None:
                return _definite(answer)
        raise attempts.failure(request.method)

    def _try(self, server: Server, request: _Request, share_s: float, attempts: _Attempts) -> Answer | None:
        """One server; None: it has no answer, and `attempts` knows why."""
        end_s = time.monotonic() + share_s
        connection = server.connection(min(CONNECT_S, share_s), self._trust)
        connected = False
        try:
            connection.connect()
            connected = attempts.heard = True
            answer = self._exchange(connection, server, request, max(end_s - time.monotonic(), 0.01))
        except (OSError, http.client.HTTPException, UnicodeError, _NoJson) as failed:
            attempts.reasons.append(f"{server.text} ({reason_of(failed)})")
            attempts.unknown |= connected
            return None
        finally:
            connection.close()
        if answer.status >= 500 or answer.status == 429:
            attempts.reasons.append(f"{server.text} ({_detail(answer)})")
            attempts.unknown |= _maybe_done(answer)
            return None
        return answer

    def _exchange(
        self, connection: http.client.HTTPConnection, server: Server, request: _Request, left_s: float
    ) -> Answer:
        connection.sock.settimeout(left_s)
        deadline_ms = max(int((left_s - _MARGIN_S) * 1000), 1)
        headers = {"Accept": "application/json", "Ipamd-Deadline-Ms": str(deadline_ms), **request.headers}
        headers |= self._identification(server, connection)
        if request.sent is not None and request.body is not None:
            headers["Content-Length"] = str(len(request.body))
        connection.request(request.method, request.target, request.open_body(), headers)
        response = connection.getresponse()
        if request.into is not None and response.status == 200:
            connection.sock.settimeout(min(left_s, _SILENCE_S))
            _save(response, request.into)
            return Answer(server, response.status, response.headers["Ipamd-Index"], response.headers)
        return Answer(server, response.status, response.headers["Ipamd-Index"], _json(response))

    def _identification(self, server: Server, connection: http.client.HTTPConnection) -> dict[str, str]:
        if self._token is None:
            return {}
        if server.keeps_secrets(connection.sock):
            return {"Authorization": f"Bearer {self._token}"}
        note(f"the token is not sent to {server.text}: without TLS others could read it")
        return {}


class _NoJson(Exception):  # noqa: N818 - named for what it is about
    """What answered is no ipamd server."""


def _json(response: http.client.HTTPResponse) -> Any:
    data = response.read()
    if not data:
        return None
    try:
        return json.loads(data)
    except ValueError:
        raise _NoJson(f"it answered status {response.status} without JSON: it is no ipamd server") from None


def _save(response: http.client.HTTPResponse, into: BinaryIO) -> None:
    into.seek(0)
    into.truncate()
    wanted, got = int(response.headers["Content-Length"] or 0), 0
    while part := response.read(_CHUNK_BYTES):
        into.write(part)
        got += len(part)
    if got != wanted:
        raise http.client.IncompleteRead(b"", wanted - got)


def _definite(answer: Answer) -> Answer:
    if answer.status < 300:
        return answer
    if answer.status == 404:
        raise NotFound(_detail(answer))
    sentence = answer.server.refusal(answer.status, _detail(answer))
    raise Refused(sentence, answer.value if isinstance(answer.value, dict) else None)


def _detail(answer: Answer) -> str:
    problem = answer.value if isinstance(answer.value, dict) else {}
    return str(problem.get("detail") or problem.get("title") or f"the server answered with status {answer.status}")


def _maybe_done(answer: Answer) -> bool:
    return not (isinstance(answer.value, dict) and answer.value.get("outcome") == "none")


def reason_of(failed: Exception) -> str:
    """Why a server gave no answer, in few words."""
    if isinstance(failed, TimeoutError):
        return "timed out"
    if isinstance(failed, OSError) and failed.strerror:
        return failed.strerror.lower()
    return str(failed) or type(failed).__name__
