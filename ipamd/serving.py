"""Owns putting the server together: from the data directory up to the ports, and down again in the other order."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ipamd import __version__, datadir, sockets, system
from ipamd.api.app import Access, build
from ipamd.api.handlers.cni import deliver
from ipamd.api.peers import HttpPeers
from ipamd.api.server import Listener
from ipamd.api.snapshots import HttpSnapshots
from ipamd.beginning import beginning_of, found, own_member
from ipamd.consensus.files import OsFiles
from ipamd.consensus.limits import Limits
from ipamd.consensus.lock import lock_data_dir
from ipamd.consensus.node import RaftNode
from ipamd.consensus.peers import Alone, Beginning
from ipamd.consensus.wire import TcpWire
from ipamd.core.ports import State, Unavailable
from ipamd.datadir import DataDirError, Identity
from ipamd.founding import ID_BYTES
from ipamd.notify import notify
from ipamd.service import Services
from ipamd.service.comparing import Comparing
from ipamd.service.heartbeats import Heartbeats
from ipamd.service.inside import Inside, StateFile
from ipamd.service.ownnode import OwnNode
from ipamd.service.ports import Facts
from ipamd.service.proposer import Proposer
from ipamd.service.reporting import Reporting
from ipamd.service.routing import RoutedLog
from ipamd.service.spooling import Spooling
from ipamd.settings import Config, Endpoint
from ipamd.spool import DirectorySpool
from ipamd.storage.database import FILE_NAME as DATABASE_FILE
from ipamd.storage.digesting import Digests
from ipamd.storage.errors import DiskFull, told_of_damage
from ipamd.storage.machine import SqliteMachine
from ipamd.storage.opening import open_database
from ipamd.storage.snapshot import SqliteState
from ipamd.storage.snapshots import make_snapshot
from ipamd.tls import Tls, TlsError, TlsFiles

logger = logging.getLogger("ipamd")

GRACE_S = 4.0
HAND_OVER_S = 1.0
READY_S = 20.0
RETRY_S = 0.2
TLS_LOOK_S = 10.0
TLS_DAYS = 30
_DAY_S = 86_400
_SENDING = "sending.snapshot"


@dataclass(frozen=True)
class Ends:
    """How the process ends where the state cannot be trusted, and where this member was removed."""

    fatal: Callable[[str], None]
    removed: Callable[[str], None]


@dataclass
class Server:
    """What a running server can be told."""

    tls: Tls | None

    def reload(self) -> None:
        """Read the certificates again."""
        if self.tls is not None:
            _refresh(self.tls)


@dataclass(frozen=True)
class _Own:
    """What is this member's own: its data, and its way to others."""

    config: Config
    identity: Identity
    machine: SqliteMachine
    state: SqliteState
    digests: Digests
    tls: Tls | None
    peers: HttpPeers


@asynccontextmanager
async def running(config: Config, ends: Ends) -> AsyncIterator[Server]:
    """The whole server; what was opened last is closed first."""
    async with AsyncExitStack() as stack:
        own = _open(config, ends, stack)
        stack.push_async_callback(own.peers.close)
        beginning = await beginning_of(config, own.identity, own.state, own.peers)
        node = _raft_node(own, beginning, ends)
        stack.push_async_callback(node.stop)
        await node.start()
        is_alone = isinstance(beginning, Alone) and len(node.members) == 1
        if is_alone:
            await found(config, node, own.state)
        services = await _serve_use_cases(own, node, ends, stack)
        listening = await _listen(own, services, stack)
        stack.push_async_callback(_hand_over, node)
        if not is_alone:
            _in_background(_found(own, node, ends), stack)
        reporting = _reporting(config, services)
        stack.push_async_callback(reporting.stop)
        _in_background(_announce(config, services, listening, reporting), stack)
        if own.tls is not None:
            _in_background(_follow_certificates(own.tls), stack)
        yield Server(own.tls)


def _open(config: Config, ends: Ends, stack: AsyncExitStack) -> _Own:
    datadir.prepare(config.data_dir)
    stack.enter_context(lock_data_dir(config.data_dir))
    identity = datadir.claim(config.data_dir, _wanted_identity(config))
    tls = _tls(config)
    with told_of_damage(config.data_dir / DATABASE_FILE):
        database = open_database(config.data_dir)
        stack.callback(database.close)
        state = SqliteState(database, fatal=ends.fatal)
        stack.callback(state.close)
        _settle_node_name(config, identity, state)
        digests = Digests(database)
        stack.callback(digests.close)
        machine = SqliteMachine(database, take_digest=digests.take)
    return _Own(config, identity, machine, state, digests, tls, HttpPeers(_trust(tls)))


def _wanted_identity(config: Config) -> Identity:
    return Identity(system.random_bytes(ID_BYTES).hex(), config.member_name, config.node_name)


def _tls(config: Config) -> Tls | None:
    if config.tls_cert is None or config.tls_key is None or config.tls_ca is None:
        return None
    return Tls(TlsFiles(config.tls_cert, config.tls_key, config.tls_ca), config.member_name)


def _trust(tls: Tls | None) -> Callable[[str | None], ssl.SSLContext | None]:
    if tls is None:
        return lambda _name: None
    return lambda name: tls.client if name is None else tls.client_of(name)


def _settle_node_name(config: Config, identity: Identity, state: State) -> None:
    """The node's name must be the one that its pods are known under. Raises DataDirError."""
    kept, wanted = identity.node_name, config.node_name
    if kept == wanted:
        return
    with state.snapshot() as snapshot:
        was_renamed = snapshot.node(config.full_name(kept)) is None and snapshot.node(config.full_name(wanted))
    if not was_renamed:
        raise DataDirError(
            f"this host is node {kept}, not {wanted}: start it with --node-name {kept}, or, to take its pods along to"
            f" the new name, first run: ipamctl node rename {kept} {wanted}"
        )
    datadir.rename_node(config.data_dir, wanted)


def _raft_node(own: _Own, beginning: Beginning, ends: Ends) -> RaftNode:
    config = own.config
    limits = Limits(
        election_min_s=config.raft_min_timeout_ms / 1000,
        election_max_s=config.raft_max_timeout_ms / 1000,
        heartbeat_s=config.raft_heartbeat_ms / 1000,
        leader_fallback_s=config.raft_fallback_ms / 1000,
    )
    clock, chance = system.SystemClock(), random.SystemRandom()
    wire = None
    if config.meets_peers:
        listener = sockets.listen_tcp(config.raft_listen)
        wire = TcpWire(listener, own.tls, clock=clock, chance=chance, limits=limits)
    return RaftNode(
        name=config.member_name,
        directory=config.data_dir / datadir.JOURNAL_DIRECTORY,
        machine=own.machine,
        files=OsFiles(),
        clock=clock,
        chance=chance,
        fatal=ends.fatal,
        limits=limits,
        retryable=(DiskFull,),
        me=own_member(config, own.identity),
        beginning=beginning,
        wire=wire,
        source=HttpSnapshots(own.peers),
        removed=ends.removed,
    )


async def _serve_use_cases(own: _Own, node: RaftNode, ends: Ends, stack: AsyncExitStack) -> Services:
    config, clock = own.config, system.SystemClock()
    heartbeats = Heartbeats(clock)
    inside = _inside(own, node, heartbeats)
    routed = RoutedLog(node, own.peers, name=config.member_name, members=lambda: node.members, clock=clock)
    spool = DirectorySpool(config.spool_dir)
    stack.push_async_callback(spool.close)
    spooling = Spooling(
        spool,
        lambda call, deadline_s: deliver(services, call, deadline_s),
        clock=clock,
        now=system.call_start,
        is_on=config.del_policy == "spool",
    )
    services = Services.assemble(
        routed,
        own.state,
        clock=clock,
        random=system.random_bytes,
        namespaces=system.Namespaces(),
        texts=system.read_text,
        facts=Facts(config.member_name, config.node_name, config.cluster, _keeper_of_node_name(config.data_dir)),
        peers=own.peers,
        inside=inside,
        spooling=spooling,
        heartbeats=heartbeats,
        records=system.CniRecords(config.cni_cache_dir),
    )
    stack.push_async_callback(services.stop)
    await services.start()
    stack.push_async_callback(spooling.stop)
    spooling.start()
    if inside is not None:
        proposer = Proposer(node, clock, system.random_bytes)
        comparing = Comparing(
            routed,
            proposer,
            inside=inside,
            peers=own.peers,
            clock=clock,
            fatal=ends.fatal,
            every_s=config.digest_every_s,
        )
        stack.push_async_callback(comparing.stop)
        comparing.start()
    return services


def _reporting(config: Config, services: Services) -> Reporting:
    """What tells the cluster of this host's own pods; started once the server serves."""
    spooling = services.spooling
    return Reporting(
        OwnNode(services.nodes, services.reader, services.facts),
        services.sandboxes,
        services.clock,
        boot_id=system.boot_id(),
        spooled=lambda: 0 if spooling is None else spooling.length,
        in_order=Reporting.no_order if spooling is None else spooling.clear,
        heartbeat_every_s=config.heartbeat_every_s,
        report_every_s=config.report_every_s,
    )


def _inside(own: _Own, node: RaftNode, heartbeats: Heartbeats) -> Inside | None:
    config = own.config
    if not config.meets_peers:
        return None
    return Inside(
        name=config.member_name,
        member_id=own.identity.member_id,
        log=node,
        cluster_id=lambda: own.machine.cluster_id,
        members=lambda: node.members,
        state_file=_state_files(config.data_dir),
        digests=own.digests.known,
        hand_over=node.transfer,
        certificate_days=_days_of(own.tls),
        heard=heartbeats.note,
        insecure=own.tls is None,
    )


def _days_of(tls: Tls | None) -> Callable[[], int | None]:
    return lambda: None if tls is None else tls.days_left(system.SystemClock().wall_ms() / 1000)


def _state_files(data_dir: Path) -> Callable[[], AbstractAsyncContextManager[StateFile]]:
    """Makes state files, one at a time: each is as large as the database."""
    one, path = asyncio.Lock(), data_dir / _SENDING
    path.unlink(missing_ok=True)

    @asynccontextmanager
    async def make() -> AsyncIterator[StateFile]:
        async with one:
            try:
                made = await asyncio.to_thread(make_snapshot, data_dir / DATABASE_FILE, path)
                yield StateFile(str(path), made.size_bytes)
            except DiskFull as error:
                raise Unavailable(str(error), "none") from None
            finally:
                path.unlink(missing_ok=True)

    return make


def _keeper_of_node_name(data_dir: Path) -> Callable[[str], None]:
    def keep(name: str) -> None:
        try:
            datadir.rename_node(data_dir, name)
        except DataDirError as error:
            logger.error("this host is node %s now, but the next start will not know: %s", name, error)  # noqa: TRY400
        else:
            logger.info("this host is node %s now: start it with --node-name %s from now on", name, name)

    return keep


async def _listen(own: _Own, services: Services, stack: AsyncExitStack) -> Endpoint:
    """Open the node socket and the TCP port; both stop at the same time. Where TCP listens. Raises SocketError."""
    config = own.config
    if config.insecure:
        logger.warning("--insecure: whoever can connect to %s is an administrator, tokens are off", config.listen)
    unix = sockets.listen_unix(config.socket)
    stack.callback(sockets.remove_unix, config.socket)
    tcp = sockets.listen_tcp(config.listen)
    access = Access.OPEN if config.insecure else Access.TOKENS
    tls = None if own.tls is None else own.tls.open_server
    listeners = [
        Listener(build(services, Access.SOCKET), unix),
        Listener(build(services, access, services.inside), tcp, tls=tls),
    ]

    async def stop() -> None:
        await asyncio.gather(*(listener.stop(GRACE_S) for listener in listeners))

    stack.push_async_callback(stop)
    for listener in listeners:
        await listener.start()
    return Endpoint(*tcp.getsockname()[:2])


async def _hand_over(node: RaftNode) -> None:
    """Before the ports close: whoever asks this member meanwhile is passed on to the next leader."""
    if node.status().is_leader and len(node.members) > 1:
        try:
            await node.transfer(None, HAND_OVER_S)
        except Unavailable as error:
            logger.info("stopping as the leader: %s", error.detail)


async def _found(own: _Own, node: RaftNode, ends: Ends) -> None:
    try:
        await found(own.config, node, own.state)
    except DataDirError as error:
        ends.fatal(str(error))


async def _announce(config: Config, services: Services, listening: Endpoint, reporting: Reporting) -> None:
    """Say once that the server can serve, and what it waits for until then; then report of its own node."""
    waits_for = None
    while True:
        detail = await services.cluster.unready(None)
        if detail is None:
            break
        if detail != waits_for:
            logger.info("not ready: %s", detail)
        waits_for = detail
        await asyncio.sleep(RETRY_S)
    where = {"listen": str(listening), "socket": str(config.socket), "data_dir": str(config.data_dir)}
    who = {"member": config.member_name, "node": config.node_name}
    index = services.log.status().applied
    logger.info("ready", extra={**where, **who, "index": index, "version": __version__})
    notify("READY=1")
    reporting.start()


async def _follow_certificates(tls: Tls) -> None:
    """Read new certificates soon after they are there, and say each day that the own one ends soon."""
    said_s = 0.0
    while True:
        _refresh(tls)
        now_s = system.SystemClock().wall_ms() / 1000
        days = tls.days_left(now_s)
        if days < TLS_DAYS and now_s - said_s >= _DAY_S:
            said_s = now_s
            logger.warning("the certificate of this member ends in %s days: ipamctl tls renew", days)
        await asyncio.sleep(TLS_LOOK_S)


def _refresh(tls: Tls) -> None:
    try:
        if tls.refresh():
            logger.info("the certificates were read again", extra={"ends_s": int(tls.read.ends_s)})
    except TlsError as error:
        logger.error("the certificates are not taken, the old ones serve on: %s", error)  # noqa: TRY400 - a sentence


def _in_background(work: Coroutine[None, None, None], stack: AsyncExitStack) -> None:
    stack.callback(asyncio.create_task(work).cancel)
