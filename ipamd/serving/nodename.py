"""Owns the node name that the data directory keeps: settled at the start, and kept when the cluster changes it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from ipamd import datadir
from ipamd.core.ports import State
from ipamd.datadir import DataDirError, Identity
from ipamd.settings import Config

logger = logging.getLogger("ipamd")


def settle_node_name(config: Config, identity: Identity, state: State) -> None:
    """The node's name must be the one that its pods are known under. Raises DataDirError."""
    kept, wanted = identity.node_name, config.node_name
    if kept == wanted:
        return
    old, new = config.full_name(kept), config.full_name(wanted)
    with state.snapshot() as snapshot:
        was_renamed = snapshot.node(old) is None and snapshot.node(new)
    if not was_renamed:
        raise DataDirError(
            f"this host is node {kept}, not {wanted}: start it with --node-name {kept}, or, to take its pods along to"
            f" the new name, first run: ipamctl node rename {old} {new}"
        )
    datadir.rename_node(config.data_dir, wanted)


def keeper_of_node_name(data_dir: Path) -> Callable[[str], None]:
    """Keeps the name that the cluster gave this node, for the next start."""

    def keep(name: str) -> None:
        try:
            datadir.rename_node(data_dir, name)
        except DataDirError as error:
            logger.error("this host is node %s now, but the next start will not know: %s", name, error)  # noqa: TRY400
        else:
            logger.info("this host is node %s now: start it with --node-name %s from now on", name, name)

    return keep
