"""Owns the program `ipamd`: the one file that knows all layers and puts them together."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import NoReturn

import click
import uvloop

from ipamd import __version__, datadir, logs, sockets, system
from ipamd.api.app import Access, build
from ipamd.api.server import Listener
from ipamd.consensus.facts import JournalFacts as FoundJournal
from ipamd.consensus.facts import read_facts
from ipamd.consensus.failures import JournalFailed, StartRefused
from ipamd.consensus.files import OsFiles
from ipamd.consensus.limits import Limits
from ipamd.consensus.lock import lock_data_dir
from ipamd.consensus.node import RaftNode
from ipamd.consensus.survey import WAY_OUT
from ipamd.core.commands import encode_command
from ipamd.core.entries import OP_BYTES, Item
from ipamd.core.ports import State, Unavailable
from ipamd.datadir import DataDirError, Identity
from ipamd.founding import ID_BYTES, admin_secret, found_command
from ipamd.logs import escaped
from ipamd.notify import notify
from ipamd.service import Services
from ipamd.service.ports import Facts
from ipamd.service.tokens import digest_of, new_secret
from ipamd.settings import Config, Endpoint, SettingsError, load, settings_options
from ipamd.sockets import SocketError
from ipamd.storage.database import FILE_NAME as DATABASE_FILE
from ipamd.storage.database import FORMAT
from ipamd.storage.doctor import JournalFacts, examine, position
from ipamd.storage.errors import DiskFull, StorageError, told_of_damage
from ipamd.storage.machine import SqliteMachine
from ipamd.storage.opening import open_database
from ipamd.storage.snapshot import SqliteState

logger = logging.getLogger("ipamd")

REFUSALS = (DataDirError, SocketError, StartRefused, JournalFailed, StorageError, Unavailable, OSError)
"""Why a start can fail for reasons that its operator can do something about: one sentence, no traceback."""

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_FATAL = 70
"""EX_SOFTWARE of sysexits.h: the state cannot be trusted any more; a supervisor may start it again."""

SWITCH_INTERVAL_S = 0.0005
"""How long a thread may keep the others waiting: at the default of 5 ms the Raft thread waits for HTTP's."""

GRACE_S = 4.0
STOP_S = 9.0
FOUND_S = 20.0
RETRY_S = 0.2


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ipamd")
def main() -> None:
    """A replicated IPAM server for CNI plugins."""


@main.command()
@settings_options
def serve(**flags: object) -> None:
    """Run the server. Without any option it is a complete service for one node."""
    try:
        config = load(flags, os.environ, system.host())
    except SettingsError as error:
        for mistake in error.mistakes:
            click.echo(f"ipamd: {mistake}", err=True)
        sys.exit(EXIT_USAGE)
    logs.configure(config.log_format, config.log_level)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    system.raise_file_limit()
    try:
        uvloop.run(_serve(config))
    except REFUSALS as error:
        logger.error("%s", error)  # noqa: TRY400 - a sentence for the operator, no traceback
        sys.exit(EXIT_REFUSED)
    except Exception:
        logger.exception("the server ended by a fault of its own")  # the process's boundary: this too is one line
        sys.exit(EXIT_FATAL)


async def _serve(config: Config) -> None:
    """Run until a signal says that it is enough. The second signal changes nothing: the end has its own limit."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("serve runs in a task")
    stopping = threading.Event()

    def stop() -> None:
        if not stopping.is_set():
            stopping.set()
            logger.info("stopping")
            notify("STOPPING=1")
            _limit_the_end()
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    with suppress(asyncio.CancelledError):
        async with _running(config):
            await asyncio.Event().wait()
    logger.info("stopped")


def _limit_the_end() -> None:
    """What is acknowledged is on the disk: an end that takes too long may be cut short."""

    def cut() -> None:
        logger.warning("stopping took longer than %s s and was cut short", STOP_S)
        _exit(0)

    timer = threading.Timer(STOP_S, cut)
    timer.daemon = True
    timer.start()


@asynccontextmanager
async def _running(config: Config) -> AsyncIterator[None]:
    """The whole server, from the data directory up; what was opened last is closed first."""
    async with AsyncExitStack() as stack:
        datadir.prepare(config.data_dir)
        stack.enter_context(lock_data_dir(config.data_dir))
        identity = datadir.claim(config.data_dir, _wanted_identity(config))
        with told_of_damage(config.data_dir / DATABASE_FILE):
            database = open_database(config.data_dir)
            stack.callback(database.close)
            state = SqliteState(database, fatal=_fatal)
            stack.callback(state.close)
            _settle_node_name(config, identity, state)
            machine = SqliteMachine(database)
        node = _raft_node(config, machine)
        stack.push_async_callback(node.stop)
        await node.start()
        await _found_if_new(config, identity, node, state)
        services = _services(config, node, state)
        stack.push_async_callback(services.stop)
        await services.start()
        listening = await _listen(config, services, stack)
        announcing = asyncio.create_task(_announce(config, node, listening))
        stack.callback(announcing.cancel)
        yield


def _wanted_identity(config: Config) -> Identity:
    return Identity(system.random_bytes(ID_BYTES).hex(), config.member_name, config.node_name)


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


def _raft_node(config: Config, machine: SqliteMachine) -> RaftNode:
    limits = Limits(
        election_min_s=config.raft_min_timeout_ms / 1000,
        election_max_s=config.raft_max_timeout_ms / 1000,
        leader_fallback_s=config.raft_max_timeout_ms / 1000,
    )
    return RaftNode(
        name=config.member_name,
        directory=config.data_dir / datadir.JOURNAL_DIRECTORY,
        machine=machine,
        files=OsFiles(),
        clock=system.SystemClock(),
        chance=random.SystemRandom(),
        fatal=_fatal,
        limits=limits,
        retryable=(DiskFull,),
    )


def _fatal(sentence: str) -> None:
    """Called in any thread when nothing can be trusted any more: no clean-up, which would trust it again."""
    logger.critical("%s", sentence)
    _exit(EXIT_FATAL)


def _exit(status: int) -> NoReturn:
    logs.flush()
    os._exit(status)


async def _found_if_new(config: Config, identity: Identity, node: RaftNode, state: State) -> None:
    """Found a cluster of this member, if it has none. Raises DataDirError, Unavailable."""
    if _has_cluster(state):
        return
    await node.wait_ready(FOUND_S)
    if _has_cluster(state):  # the journal had it: the database was gone, and has been made anew
        logger.warning("the state was made anew from the journal")
        return
    secret = admin_secret(config.data_dir, lambda: new_secret(system.random_bytes))
    wall_ms = system.SystemClock().wall_ms()
    command = found_command(config, identity, digest_of(secret), wall_ms, system.random_bytes)
    await node.propose(Item(system.random_bytes(OP_BYTES), encode_command(command)), FOUND_S)
    logger.info("founded a cluster", extra={"member": identity.member_name})


def _has_cluster(state: State) -> bool:
    with state.snapshot() as snapshot:
        return snapshot.cluster_id() is not None


def _services(config: Config, node: RaftNode, state: State) -> Services:
    return Services.assemble(
        node,
        state,
        clock=system.SystemClock(),
        random=system.random_bytes,
        namespaces=system.Namespaces(),
        facts=Facts(config.member_name, config.node_name, config.cluster, _keeper_of_node_name(config.data_dir)),
    )


def _keeper_of_node_name(data_dir: Path) -> Callable[[str], None]:
    def keep(name: str) -> None:
        try:
            datadir.rename_node(data_dir, name)
        except DataDirError as error:
            logger.error("this host is node %s now, but the next start will not know: %s", name, error)  # noqa: TRY400
        else:
            logger.info("this host is node %s now: start it with --node-name %s from now on", name, name)

    return keep


async def _listen(config: Config, services: Services, stack: AsyncExitStack) -> Endpoint:
    """Open the node socket and the TCP port; both stop at the same time. Where TCP listens. Raises SocketError."""
    if config.insecure:
        logger.warning("--insecure: whoever can connect to %s is an administrator, tokens are off", config.listen)
    unix = sockets.listen_unix(config.socket)
    stack.callback(sockets.remove_unix, config.socket)
    tcp = sockets.listen_tcp(config.listen)
    access = Access.OPEN if config.insecure else Access.TOKENS
    listeners = [Listener(build(services, Access.SOCKET), unix), Listener(build(services, access), tcp)]

    async def stop() -> None:
        await asyncio.gather(*(listener.stop(GRACE_S) for listener in listeners))

    stack.push_async_callback(stop)
    for listener in listeners:
        await listener.start()
    return Endpoint(*tcp.getsockname()[:2])


async def _announce(config: Config, node: RaftNode, listening: Endpoint) -> None:
    """Say once that the server can serve, and what it waits for until then."""
    waits_for = None
    while True:
        try:
            index = await node.barrier(FOUND_S)
            break
        except Unavailable as error:
            if error.detail != waits_for:
                logger.info("not ready: %s", error.detail)
            waits_for = error.detail
            await asyncio.sleep(RETRY_S)
    where = {"listen": str(listening), "socket": str(config.socket), "data_dir": str(config.data_dir)}
    who = {"member": config.member_name, "node": config.node_name}
    logger.info("ready", extra={**where, **who, "index": index, "version": __version__})
    notify("READY=1")


DATA_DIR = click.option(
    "--data-dir", required=True, type=click.Path(file_okay=False, path_type=Path), help="The data directory to look at."
)


@main.command()
@DATA_DIR
def doctor(data_dir: Path) -> None:
    """Examine the data directory of a stopped server. It changes nothing.

    Exit status: 0 nothing was found, 1 something was found, 2 it could not be examined.
    """
    try:
        with lock_data_dir(_existing(data_dir)):
            journal = read_facts(_journal_of(data_dir), OsFiles())
            found = examine(data_dir, JournalFacts(journal.first, journal.last, journal.term_at))
            where = position(data_dir)
    except REFUSALS as error:
        click.echo(f"ipamd: {error}", err=True)
        sys.exit(EXIT_USAGE)
    damage = [finding.sentence for finding in journal.findings if finding.fatal]
    damage += [f"{finding.where}: {finding.sentence}" for finding in found]
    for sentence in damage:
        click.echo(escaped(sentence))
    for finding in journal.findings:
        if not finding.fatal:
            click.echo(escaped(f"{finding.sentence}: the next start cuts it off, nothing in it was acknowledged"))
    click.echo(f"{data_dir}: {_summary(len(damage), journal, where)}")
    sys.exit(1 if damage else 0)


def _summary(count: int, journal: FoundJournal, where: tuple[int, int] | None) -> str:
    found = "nothing found" if count == 0 else f"{count} finding" if count == 1 else f"{count} findings"
    applied = "not readable" if where is None else f"applied up to index {where[0]} of term {where[1]}"
    return f"{found}; state {applied}, journal from index {journal.first} to {journal.last}"


@main.command()
@DATA_DIR
def migrate(data_dir: Path) -> None:
    """Bring the data directory of a stopped server to this program's format. A copy of the old state is kept."""
    from ipamd.storage.migrate import migrate as migrate_database  # noqa: PLC0415 - slow to load, and serve needs it not

    try:
        with lock_data_dir(_existing(data_dir)), told_of_damage(data_dir / DATABASE_FILE):
            copy = migrate_database(data_dir / DATABASE_FILE)
    except REFUSALS as error:
        click.echo(f"ipamd: {error}", err=True)
        sys.exit(EXIT_REFUSED)
    click.echo(f"{data_dir} has format {FORMAT}" + (f"; the state as it was is kept in {copy}" if copy else " already"))


@main.command()
def version() -> None:
    """Print the version of this program, and the format of its state."""
    click.echo(f"ipamd {__version__} (state format {FORMAT})")


def _existing(data_dir: Path) -> Path:
    """A data directory that is one. Raises DataDirError."""
    if not (data_dir / DATABASE_FILE).is_file():
        raise DataDirError(f"{data_dir} is no data directory of ipamd: it has no {DATABASE_FILE}")
    return data_dir


def _journal_of(data_dir: Path) -> Path:
    """The directory of the journal. Raises DataDirError."""
    directory = data_dir / datadir.JOURNAL_DIRECTORY
    if not directory.is_dir():
        raise DataDirError(f"{directory} is missing, and the state alone is not whole; {WAY_OUT}")
    return directory


if __name__ == "__main__":
    main()
