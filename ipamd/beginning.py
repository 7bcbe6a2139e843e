"""Owns how a member begins: from its state, by joining a cluster, with others, or alone; and who founds the cluster."""

from __future__ import annotations

import asyncio
import logging

from ipamd import system
from ipamd.api.peers import HttpPeers
from ipamd.consensus.failures import StartRefused
from ipamd.consensus.node import RaftNode
from ipamd.consensus.peers import Alone, Beginning, Gather, Join
from ipamd.core.commands import encode_command
from ipamd.core.entries import OP_BYTES, Item
from ipamd.core.levels import LEVEL
from ipamd.core.model import Member
from ipamd.core.ports import State, Unavailable
from ipamd.datadir import DataDirError, Identity, drop_admin_token
from ipamd.errors import ApiError
from ipamd.founding import admin_secret, found_command
from ipamd.service.tokens import digest_of, new_secret
from ipamd.settings import Config

logger = logging.getLogger("ipamd")

ASK_S = 10.0
AGAIN_S = 1.0
FOUND_S = 20.0
_LOOK_S = 0.05


def own_member(config: Config, identity: Identity) -> Member:
    """How others are to know this member."""
    where = (str(config.advertise_raft), config.advertise_url)
    return Member(identity.member_name, identity.member_id, *where, level=LEVEL)


async def beginning_of(config: Config, identity: Identity, state: State, peers: HttpPeers) -> Beginning:
    """How this start begins. Waits for the cluster to join. Raises StartRefused, DataDirError."""
    with state.snapshot() as snapshot:
        cluster_id, members = snapshot.cluster_id(), snapshot.members()
    if cluster_id is not None:
        others = [member.name for member in members if member.name != identity.member_name]
        _refuse_unmet(config, others)
        await _refuse_another_cluster(config, cluster_id, peers, alone=not others)
        return Alone()
    if config.join is not None:
        return await _join(config, config.join, own_member(config, identity), peers)
    if config.peer is not None:
        return Gather(tuple(Member(peer.name, "", str(peer.raft), peer.url) for peer in config.peer))
    return Alone()


def _refuse_unmet(config: Config, others: list[str]) -> None:
    if others and not config.meets_peers:
        raise StartRefused(
            f"this member's cluster has others ({', '.join(others)}), and it was started without certificates: start it"
            " with --tls-cert, --tls-key and --tls-ca (on loopback --insecure will do)"
        )


async def _refuse_another_cluster(config: Config, cluster_id: str, peers: HttpPeers, *, alone: bool) -> None:
    """Refuse to take data of its own into another cluster.

    A member of several may start while the one to join does not answer, or does not know its token any more: it was in
    already. One that is alone may have nothing to do with it, and waits. Raises StartRefused, DataDirError.
    """
    if config.join is None:
        return
    said = None
    while True:
        try:
            found = await peers.cluster_at(config.join, _token(config), ASK_S)
            break
        except (ApiError, DataDirError) as error:
            why = error.detail if isinstance(error, ApiError) else str(error)
            if not alone:
                logger.warning("it is not compared with %s, which this member had joined: %s", config.join, why)
                return
            raise StartRefused(f"{config.join} does not say which cluster it is of: {why}") from None
        except Unavailable as error:
            if not alone:
                return
            why = f"{error.detail}; if that cluster is no more, start without --join"
            said = _say(f"not ready: waiting for {config.join}: {why}", said)
            await asyncio.sleep(AGAIN_S)
    if found.cluster_id != cluster_id:
        raise StartRefused(
            f"{config.data_dir} holds data of another cluster, {cluster_id}, than that of {config.join}: to join it,"
            f" stop, empty {config.data_dir} (all that is in it is lost), and start again"
        )


async def _join(config: Config, url: str, own: Member, peers: HttpPeers) -> Join:
    """Have the cluster take this member in; ask until it answers. Raises StartRefused."""
    said = None
    while True:
        try:
            index, cluster = await peers.join(url, _token(config), own, ASK_S)
            break
        except ApiError as error:
            raise StartRefused(f"{url} does not take this member in: {error.detail}") from None
        except Unavailable as error:
            said = _say(f"not ready: waiting to join {url}: {error.detail}", said)
            await asyncio.sleep(AGAIN_S)
    logger.info("taken in by the cluster %s", cluster.cluster_id, extra={"index": index})
    return Join(cluster.members, index)


def _say(sentence: str, said: str | None) -> str:
    if sentence != said:
        logger.info("%s", sentence)
    return sentence


def _token(config: Config) -> str | None:
    if config.token_file is None:
        return None
    try:
        return config.token_file.read_text().strip()
    except (OSError, ValueError) as error:
        raise DataDirError(f"the token file {config.token_file} cannot be read: {error}") from error


async def found(config: Config, node: RaftNode, state: State) -> None:
    """Found the cluster if this member is its first leader; returns once it is founded. Raises DataDirError."""
    secret: str | None = None
    was_empty = False
    while True:
        leads = node.status().is_leader  # asked first: a leader has applied all that its journal had
        if _is_founded(state):
            break
        was_empty = True
        if not leads:
            await asyncio.sleep(_LOOK_S)
            continue
        secret = secret or admin_secret(config.data_dir, lambda: new_secret(system.random_bytes))
        wall_ms = system.SystemClock().wall_ms()
        command = found_command(config, node.members, digest_of(secret), wall_ms, system.random_bytes)
        try:
            await node.propose(Item(system.random_bytes(OP_BYTES), encode_command(command)), FOUND_S)
        except Unavailable as error:
            logger.info("not founded yet: %s", error.detail)
    if secret is not None:
        _settle(config, state, digest_of(secret))
    elif was_empty and len(node.members) == 1:
        logger.warning("the state was made anew from the journal")


def _is_founded(state: State) -> bool:
    """Whether the state is of a cluster. One that was restored is, but for its first member."""
    with state.snapshot() as snapshot:
        return snapshot.cluster_id() is not None and bool(snapshot.members())


def _settle(config: Config, state: State, digest: bytes) -> None:
    """Whoever lost the lead before its command counted has a token that nobody knows: its file goes."""
    with state.snapshot() as snapshot:
        is_ours = any(token.digest == digest for token in snapshot.tokens())
    if is_ours:
        logger.info("founded a cluster", extra={"member": config.member_name})
    else:
        drop_admin_token(config.data_dir)
