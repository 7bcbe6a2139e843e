"""Owns consumers of events for tests: `ipamctl events --follow` in a process of its own, and what it printed."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.cluster import BIN, MemberServer


class Consumer:
    """One who follows the events from the oldest on; the first of the servers is its own, the others come after it."""

    def __init__(self, directory: Path, name: str, servers: Iterable[MemberServer], *args: str) -> None:
        self._out, self._err = directory / f"{name}.out", directory / f"{name}.err"
        flags = [flag for server in servers for flag in ("--server", f"unix:{server.socket}")]
        self._command = [str(BIN / "ipamctl"), *flags, "-o", "json", "events", "--follow", *args]

    def __enter__(self) -> Self:
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(self._command, stdout=out, stderr=err)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def events(self) -> list[Any]:
        """What it printed so far; a line is whole or not there yet."""
        return [json.loads(line) for line in self._out.read_text().split("\n")[:-1]]

    def wait_for(self, index: int, timeout_s: float = 90.0) -> list[Any]:
        """What it printed once it has come to an event."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            assert self._process.poll() is None, self._err.read_text()
            events = self.events
            if events and events[-1]["index"] >= index:
                return events
            time.sleep(0.1)
        raise AssertionError(f"not at event {index} within {timeout_s} s: {self.events[-1:]} {self._err.read_text()}")


def all_pages(member: MemberServer) -> list[Any]:
    """All events, as a member's pages have them."""
    items: list[Any] = []
    while True:
        after = items[-1]["index"] if items else 0
        page = member.ask("GET", f"/v1/events?limit=5000&after={after}").json
        items += page["items"]
        if page["next"] is None:
            return items


def numbered(events: Sequence[Any]) -> None:
    """Nothing is missing and nothing comes twice."""
    assert [event["index"] for event in events] == list(range(1, len(events) + 1))
