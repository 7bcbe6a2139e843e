"""Owns what is this member's own: its data directory, opened, and its way to others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from ipamd import datadir, system
from ipamd.api.peers import HttpPeers
from ipamd.consensus.lock import lock_data_dir
from ipamd.datadir import Identity
from ipamd.founding import ID_BYTES
from ipamd.serving.certificates import tls_of, trust_of
from ipamd.serving.nodename import settle_node_name
from ipamd.settings import Config
from ipamd.storage.database import FILE_NAME as DATABASE_FILE
from ipamd.storage.digesting import Digests
from ipamd.storage.errors import told_of_damage
from ipamd.storage.machine import SqliteMachine
from ipamd.storage.opening import open_database
from ipamd.storage.snapshot import SqliteState
from ipamd.tls import Tls


@dataclass(frozen=True)
class Ends:
    """How the process ends where the state cannot be trusted, and where this member was removed."""

    fatal: Callable[[str], None]
    removed: Callable[[str], None]


@dataclass(frozen=True)
class Own:
    """What is this member's own: its data, and its way to others."""

    config: Config
    identity: Identity
    machine: SqliteMachine
    state: SqliteState
    digests: Digests
    tls: Tls | None
    peers: HttpPeers


def open_own(config: Config, ends: Ends, stack: AsyncExitStack) -> Own:
    """The data directory, locked and open. Raises DataDirError, StartRefused, StorageError, TlsError."""
    datadir.prepare(config.data_dir)
    datadir.refuse_unfinished(config.data_dir)
    stack.enter_context(lock_data_dir(config.data_dir))
    identity = datadir.claim(config.data_dir, _wanted_identity(config))
    tls = tls_of(config)
    with told_of_damage(config.data_dir / DATABASE_FILE):
        database = open_database(config.data_dir)
        stack.callback(database.close)
        state = SqliteState(database, fatal=ends.fatal)
        stack.callback(state.close)
        settle_node_name(config, identity, state)
        digests = Digests(database)
        stack.callback(digests.close)
        machine = SqliteMachine(database, take_digest=digests.take)
    return Own(config, identity, machine, state, digests, tls, HttpPeers(trust_of(tls)))


def _wanted_identity(config: Config) -> Identity:
    return Identity(system.random_bytes(ID_BYTES).hex(), config.member_name, config.node_name)
