"""Owns the server that is fuzzed: in a thread of its own, nothing going on in it by itself, with a token of each role."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import patch

from ipamd.api.buckets import Rate
from ipamd.api.limits import Rates
from ipamd.consensus.logclock import LogClock
from ipamd.storage.database import FILE_NAME
from ipamd.storage.digest import digest
from ipamd.storage.records import SqliteRecords
from tests.support.stack import SECRET, Stack, running

_ENDLESS = Rate(1_000_000, 1_000_000)
ROLES = ("admin", "operator", "reader", "node", "enrol", "wrong", "none")


class Running:
    """A running server. `tokens`: the secret of each role; `none` has none."""

    def __init__(self, stack: Stack, directory: Path) -> None:
        self.url = f"http://127.0.0.1:{stack.port}"
        self.tokens: dict[str, str | None] = {"admin": SECRET, "wrong": "ipamd_wrong", "none": None}
        self._connection = sqlite3.connect(f"file:{directory / FILE_NAME}?mode=ro", uri=True, check_same_thread=False)
        self._digest = self._version = ""

    def state(self) -> str:
        """A digest of all records; what is remembered of operations is none of them."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            with self._connection:
                self._connection.execute("BEGIN")
                self._digest = digest(SqliteRecords(self._connection))
        return self._digest

    def close(self) -> None:
        self._connection.close()


async def _furnish(stack: Stack, target: Running) -> None:
    """What requests can be about."""
    await stack.pool("p", "10.0.0.0/24", labels={"a": "b"})
    await stack.pool("six", "2001:db8::/64")
    for at in range(3):
        body = {"pool": "p", "pod_ref": f"t/a{at}", "container_id": f"c{at}", "node": "n7"}
        assert (await stack.ask("POST", "/v1/reservations", body)).status == 201
    conf = {"cniVersion": "1.0.0", "name": "net", "ipam": {"type": "ipamd", "pool": "p"}}
    assert (await stack.cni("add", conf, Ipamd_Node="n7")).status == 200
    for role in ("operator", "reader", "node", "enrol"):
        body = {"name": role, "role": role, **({"node": "n7"} if role == "node" else {})}
        made = await stack.ask("POST", "/v1/tokens", body)
        assert made.status == 201, made.raw
        target.tokens[role] = made.json["secret"]
    for role in ROLES:
        await stack.ask_tcp("GET", "/v1/cluster", token=target.tokens[role])


@contextmanager
def serving(directory: Path) -> Iterator[Running]:
    """A server until the block ends."""
    ready, end = threading.Event(), threading.Event()
    found: list[Running] = []
    failed: list[BaseException] = []

    async def serve() -> None:
        async with running(directory, rates=Rates(*[_ENDLESS] * 4)) as stack:
            await stack.services.watch.stop()
            await stack.services.housekeeping.stop()
            target = Running(stack, directory)
            with closing(target):
                await _furnish(stack, target)
                await stack.services.token_use.stop()  # it writes down that tokens are used
                now_ms = stack.services.log.status().log_ms
                # Time stands still: else what is due ends in whatever request looks at the log next.
                with patch.object(LogClock, "log_ms", lambda _clock: now_ms):
                    found.append(target)
                    ready.set()
                    await asyncio.to_thread(end.wait)

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            failed.append(error)
            raise
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="server")
    thread.start()
    try:
        ready.wait()
        if not found:
            raise RuntimeError("the server did not start") from (failed[0] if failed else None)
        yield found[0]
    finally:
        end.set()
        thread.join(20)
