"""Owns taking the digest of the state at an exact index while the log goes on: in a thread, from a snapshot."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from threading import Event, Lock
from typing import Final

from ipamd.storage import statements as st
from ipamd.storage.database import Database
from ipamd.storage.digest import machine_digest
from ipamd.storage.errors import Broken

logger = logging.getLogger(__name__)

KEPT: Final = 5
"""How many digests are kept, the newest: the others may lag a little."""

_REST_S: Final = 0.002


class _GivenUp(Exception):  # noqa: N818 - no error: the member is closing
    """The digest is not wanted any more."""


class Digests:
    """The digests of this member's state, by log index."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="digest")
        self._running: Future[None] | None = None
        self._lock = Lock()
        self._closing = Event()
        self._known: dict[int, str] = {}

    def known(self) -> Mapping[int, str]:
        """The newest few. Any thread may ask."""
        with self._lock:
            return dict(self._known)

    def take(self, index: int) -> None:
        """Fix the state as it is, at this index, and begin to work on it. Called between two transactions.

        While one is being worked on another is not begun: the comparison misses a turn, no more. Raises Broken.
        """
        if self._running is not None and not self._running.done():
            logger.info("no digest at log index %s: the one before is not done", index)
            return
        connection = self._database.reader()
        try:
            _fix(connection, index)
        except BaseException:
            connection.close()
            raise
        self._running = self._thread.submit(self._work, index, connection)

    def close(self) -> None:
        """Give up what is being worked on, and end."""
        self._closing.set()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _rest(self) -> None:
        """Let the threads that answer have the interpreter: they would wait for every other turn. Ends at a close."""
        if self._closing.wait(_REST_S):
            raise _GivenUp

    def _work(self, index: int, connection: sqlite3.Connection) -> None:
        with closing(connection):
            value = machine_digest(connection, self._rest)
        with self._lock:
            self._known[index] = value
            for old in sorted(self._known)[:-KEPT]:
                del self._known[old]


def _fix(connection: sqlite3.Connection, index: int) -> None:
    """Begin a transaction that sees the state at this index and nothing later. Raises Broken."""
    connection.execute("BEGIN")
    found = connection.execute(st.META).fetchone()[1]
    if found != index:
        raise Broken(f"the digest at log index {index} would be that of {found}")
