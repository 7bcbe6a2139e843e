"""Owns the noun of what a host looks at: an attachment with its network namespace."""

from __future__ import annotations

from typing import NamedTuple

from ipamd.core.addresses import Address

Key = tuple[str | None, str | None, str]
"""CNI network, container and interface."""


class Sandbox(NamedTuple):
    """An attachment of this node, as the cluster has it, or as the runtime recorded it: what there is to look at."""

    cni_network: str | None
    container_id: str | None
    ifname: str
    netns: str | None
    netns_inode: int | None
    pod_ref: str
    addresses: tuple[Address, ...] = ()
    pool: str | None = None

    @property
    def key(self) -> Key:
        """What tells it from the others of this node."""
        return self.cni_network, self.container_id, self.ifname
