"""Owns the network between members: a port, connections to each member, and the time they may keep silent.

All of it lives in the loop of the member's thread. Names are resolved by the loop, elsewhere. Of two members the one
with the greater name dials; the other does so only when nobody has come for a while, which is how a member that moved
finds the others.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from ipamd.consensus.clock import Chance, Clock
from ipamd.consensus.connection import Connection
from ipamd.consensus.frames import LIVE, frame_of
from ipamd.consensus.limits import Limits
from ipamd.consensus.peers import Ears, Message
from ipamd.core.model import Member

logger = logging.getLogger(__name__)

LOOK_S = 0.1
"""How often it is looked who is missing and who is silent."""

PATIENCE_S = 3.0
"""How long the one with the lesser name waits to be dialled."""

REFUSED_S = 2.0
"""How long who was refused waits before it asks again."""


class MemberTls(Protocol):
    """Contexts for connections of members; what they present may change from one connection to the next."""

    mutual_server: ssl.SSLContext

    def client_of(self, member: str) -> ssl.SSLContext:
        """For a connection to this member and nobody else."""


class TcpWire:
    """Connections over TCP, with TLS unless `tls` is None."""

    def __init__(
        self, listener: socket.socket, tls: MemberTls | None, *, clock: Clock, chance: Chance, limits: Limits
    ) -> None:
        """`listener` is a listening socket that does not block; it is closed with the wire."""
        self.limits = limits
        self.secure = tls is not None
        self.ears: Ears
        self._listener = listener
        self._tls = tls
        self._clock = clock
        self._chance = chance
        self._name = ""
        self._members: dict[str, Member] = {}
        self._connections: set[Connection] = set()
        self._up: dict[str, Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._strangers: dict[asyncio.Task[None], socket.socket] = {}
        self._dialling: set[str] = set()
        self._dial_at_s: dict[str, float] = {}
        self._failures: dict[str, str] = {}
        self._hints: dict[str, str] = {}
        self._looked_s = 0.0
        self._wake: Callable[[], None]
        self._fail: Callable[[Exception], None]
        self._closed = False

    # What the member asks.

    def listen(self, ears: Ears) -> None:
        """Where to tell what happens."""
        self.ears = ears
        self._name = ears.hello().name

    def open(self, wake: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """Begin to listen and to dial, in the running loop."""
        self._wake, self._fail = wake, fail
        self._looked_s = self.now_s()
        self._spawn(self._accept())
        self._spawn(self._look())

    def reach(self, members: Sequence[Member]) -> None:
        """Whom to be connected with."""
        before, self._members = self._members, {member.name: member for member in members}
        for name in before.keys() - self._members.keys():
            self._dial_at_s.pop(name, None)
            if name in self._up:
                self._up[name].close()
        for name in self._members.keys() - before.keys():
            self._dial_at_s[name] = self.now_s() + (0.0 if self._name > name else PATIENCE_S)

    def send(self, name: str, message: Message) -> bool:
        """Send a message, if there is a connection; entries only while not too much waits already."""
        connection = self._up.get(name)
        if connection is None:
            return False
        if message["type"] == "append_entries" and connection.backlog_bytes > self.limits.backlog_bytes:
            return False
        connection.send(frame_of(message))
        return True

    def close(self) -> None:
        """Close everything at once. Who has something to say says it before."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        for connection in list(self._connections):
            connection.abort()
        self._listener.close()

    @property
    def connected(self) -> frozenset[str]:
        """Members that there is a connection to. Any thread may ask."""
        return frozenset(self._up)

    # What connections tell.

    def now_s(self) -> float:
        """Monotonic seconds."""
        return self._clock.monotonic_s()

    def made(self, connection: Connection) -> None:
        """A connection stands; it is not known yet who is there."""
        self._connections.add(connection)

    def told(self) -> None:
        """The member was told something."""
        if not self._closed:
            self._wake()

    def failed(self, error: Exception) -> None:
        """The member cannot go on."""
        if not self._closed:
            self._fail(error)

    def up(self, connection: Connection) -> None:
        """A member is there; the older connection under its name is closed first."""
        peer = connection.peer
        if peer is None:
            raise RuntimeError("a connection came up before it was known who is there")
        older = self._up.pop(peer.name, None)
        if older is not None:
            older.abort()
            self.ears.disconnected(peer.name)
        self._up[peer.name] = connection
        self._failures.pop(peer.name, None)
        self._hints |= {name: raft for name, raft in peer.others if name in self._members}
        logger.info("connected with %s", peer.name)
        self.ears.connected(peer)

    def down(self, connection: Connection) -> None:
        """A connection is gone."""
        self._connections.discard(connection)
        name = connection.peer.name if connection.peer else None
        if name is None or self._up.get(name) is not connection:
            return
        del self._up[name]
        logger.info("lost the connection with %s", name)
        self._dial_later(name)
        if not self._closed:
            self.ears.disconnected(name)
            self.told()

    # Who comes.

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                logger.warning("cannot accept a connection of a member: %s", error.strerror)
                await asyncio.sleep(LOOK_S)
                continue
            accepted.setblocking(False)
            while len(self._strangers) >= self.limits.strangers:
                oldest = next(iter(self._strangers))
                self._forget(oldest)
                oldest.cancel()
                self.ears.figures.bad_connections += 1
            task = self._spawn(self._admit(accepted))
            self._strangers[task] = accepted
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        """Somebody said who it is, or never will: a task that was cancelled may not even have begun."""
        accepted = self._strangers.pop(task, None)
        if accepted is not None and (task.cancelled() or not task.done()):
            accepted.close()

    async def _admit(self, accepted: socket.socket) -> None:
        """Find out who came: there is a limit to how long that may take."""
        loop = asyncio.get_running_loop()
        connection = Connection(self, None)
        context = self._tls.mutual_server if self._tls else None
        try:
            async with asyncio.timeout(self.limits.handshake_s):
                await loop.connect_accepted_socket(lambda: connection, accepted, ssl=context)
                await asyncio.shield(connection.ended)
        except (OSError, TimeoutError) as error:
            self.ears.figures.bad_connections += 1
            logger.debug("somebody came and did not say who it is: %s", _why(error))
            connection.abort()
            accepted.close()
        except asyncio.CancelledError:
            connection.abort()
            raise

    # Who is looked for.

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            now_s = self.now_s()
            on_time, self._looked_s = now_s - self._looked_s < 5 * LOOK_S, now_s
            for connection in list(self._up.values()):
                self._mind(connection, now_s, may_reap=on_time)
            for name in self._members.keys() - self._up.keys() - self._dialling:
                if self._dial_at_s.get(name, 0.0) <= now_s:
                    self._dialling.add(name)
                    self._spawn(self._dial(self._members[name]))

    def _mind(self, connection: Connection, now_s: float, *, may_reap: bool) -> None:
        """Say that this member lives; close a connection that is silent, unless this process was asleep itself."""
        if may_reap and now_s - connection.heard_s > self.limits.connection_s:
            logger.info("%s is silent", connection.peer.name if connection.peer else "somebody")
            connection.abort()
        elif now_s - connection.sent_s > self.limits.connection_s / 4:
            connection.send(LIVE)

    async def _dial(self, member: Member) -> None:
        loop = asyncio.get_running_loop()
        connection = Connection(self, member.name)
        where = self._where(member)
        host, _, port = where.rpartition(":")
        context = self._tls.client_of(member.name) if self._tls else None
        try:
            async with asyncio.timeout(self.limits.connection_s):
                await loop.create_connection(lambda: connection, host.strip("[]"), int(port), ssl=context)
                await asyncio.shield(connection.ended)
            if not connection.is_up and not connection.was_refused:
                self._note_failure(member.name, where, "it closed the connection")
        except (OSError, TimeoutError, ValueError) as error:
            connection.abort()
            self._note_failure(member.name, where, _why(error))
        finally:
            self._dialling.discard(member.name)
            self._dial_later(member.name, REFUSED_S if connection.was_refused else 0.0)

    def _where(self, member: Member) -> str:
        """Where to look for a member: where the state has it or, after a failure there, where another one has."""
        hint = self._hints.get(member.name, member.raft)
        return hint if hint != member.raft and member.raft in self._failures.get(member.name, "") else member.raft

    def _note_failure(self, name: str, where: str, why: str) -> None:
        failure = f"cannot reach {name} at {where}: {why}"
        if self._failures.get(name) != failure:
            logger.info("%s", failure)
        self._failures[name] = failure

    def _dial_later(self, name: str, least_s: float = 0.0) -> None:
        """With some spread, so that two do not dial each other in step."""
        pause_s = max(least_s, LOOK_S if self._name > name else PATIENCE_S) * (1 + self._chance.random())
        self._dial_at_s[name] = self.now_s() + pause_s

    def _spawn(self, work: Coroutine[object, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and isinstance(error, Exception):
            self.failed(error)


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message or str(error)
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer in time"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
