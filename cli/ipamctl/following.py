"""Owns following the events: at one server after the other, each going on where the one before ended."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any, Final

from ipamctl.client import Client, Query, reason_of, route, target_of
from ipamctl.exits import Refused, Unavailable, note
from ipamctl.server import Server

SILENCE_S: Final = 15.0
"""A server says something at least every 5 s; one that says nothing for so long is left."""

_PAUSES_S: Final = (0.1, 0.3, 1.0, 2.0)
_PASSING: Final = (429, 500, 502, 503, 504)


class Follower:
    """Where one is in the events, and how to go on."""

    def __init__(self, client: Client, wanted: Query, after: str) -> None:
        """`after`: an index, or `latest`: from now on."""
        self._client, self._after = client, after
        self._wanted = {**wanted, "stale": "ok" if client.stale else None}
        self._cluster_id: str | None = None
        self._heard = False
        self._failed: list[str] = []

    def events(self) -> Iterator[dict[str, Any]]:
        """Each event as it comes, for ever. Raises Refused, and Unavailable where no server answers at first."""
        servers = self._client.servers
        turn = 0
        while True:
            server = servers[turn % len(servers)]
            turn += 1
            try:
                yield from self._events_of(server)
                self._failed.append(f"{server.text} (the stream ended)")
            except (OSError, http.client.HTTPException, ValueError) as failed:
                self._failed.append(f"{server.text} ({reason_of(failed)})")
            if len(self._failed) % len(servers) == 0:
                self._pause(len(self._failed) // len(servers))

    def _pause(self, rounds: int) -> None:
        """No server has more: wait, ever longer."""
        reasons = ", ".join(self._failed[-len(self._client.servers) :])
        if not self._heard and rounds == len(_PAUSES_S):
            raise Unavailable(f"no events from {reasons}: is ipamd running there?", heard=False)
        if rounds == len(_PAUSES_S):
            note(f"no events from {reasons}; it is tried again and again")
        time.sleep(_PAUSES_S[min(rounds, len(_PAUSES_S)) - 1])

    def _events_of(self, server: Server) -> Iterator[dict[str, Any]]:
        """The events of one server, until its stream ends. Raises Refused, OSError, HTTPException, ValueError."""
        connection, headers = self._client.connected(server, SILENCE_S)
        try:
            headers["Accept"] = "text/event-stream"
            place = {"after": self._after, "cluster": self._cluster_id}
            connection.request("GET", target_of(route("events"), {**self._wanted, **place}), None, headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise _failure(server, answer)
            self._heard, self._failed = True, []
            self._cluster_id = answer.headers["Ipamd-Cluster-Id"] or self._cluster_id
            yield from self._read(answer)
        finally:
            connection.close()

    def _read(self, answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
        """Only what came whole counts: an index is kept once its event was handed on."""
        index, data = "", b""
        while line := answer.readline():
            name, _, value = line.rstrip(b"\r\n").partition(b":")
            if name == b"id":
                index = value.strip().decode()
            elif name == b"data":
                data = value
            elif line.strip() == b"":
                if data:
                    yield json.loads(data)
                if index:
                    self._after = index
                index, data = "", b""


def _failure(server: Server, answer: http.client.HTTPResponse) -> Exception:
    try:
        problem = json.loads(answer.read())
        detail = str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        problem, detail = {}, f"the server answered with status {answer.status}"
    if answer.status in _PASSING:
        return OSError(detail)
    return Refused(server.refusal(answer.status, detail), problem)
