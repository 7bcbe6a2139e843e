"""Owns making this process a Raft member, and what the other members may ask of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from ipamd import __version__, datadir, sockets, system
from ipamd.api.snapshots import HttpSnapshots
from ipamd.beginning import own_member
from ipamd.consensus.files import OsFiles
from ipamd.consensus.limits import Limits
from ipamd.consensus.node import RaftNode
from ipamd.consensus.peers import Beginning
from ipamd.consensus.wire import TcpWire
from ipamd.core.ports import Unavailable
from ipamd.service.heartbeats import Heartbeats
from ipamd.service.inside import Inside, StateFile
from ipamd.serving.certificates import days_of
from ipamd.serving.own import Ends, Own
from ipamd.storage.database import FILE_NAME as DATABASE_FILE
from ipamd.storage.errors import DiskFull
from ipamd.storage.snapshots import make_snapshot

_SENDING = "sending.snapshot"


def raft_node(own: Own, beginning: Beginning, ends: Ends) -> RaftNode:
    """The member, not started yet."""
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


def inside_of(own: Own, node: RaftNode, heartbeats: Heartbeats) -> Inside | None:
    """What other members may ask of this one; None: it meets none."""
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
        certificate_days=days_of(own.tls),
        heard=heartbeats.note,
        version=__version__,
        wall_ms=system.SystemClock().wall_ms,
        insecure=own.tls is None,
    )


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
