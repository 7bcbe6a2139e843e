"""Owns the commands that end a restore, by reports and by operators; `commands` has them in its list."""

from __future__ import annotations

from ipamd.core.addresses import Address
from ipamd.core.origin import Origin
from ipamd.core.values import Value


class ConfirmPool(Value):
    """No address of a pool is in use but those that are recorded: what is withheld in it may be given again.

    `force`: also where two pods are known to use one address; then the record stands.
    """

    origin: Origin
    pool: str
    force: bool = False


class Living(Value):
    """An interface of a container that lives, and the addresses that its node lists for it. `pool` None: not known."""

    pod_ref: str
    ifname: str
    container_id: str
    addresses: tuple[Address, ...]
    cni_network: str | None = None
    pool: str | None = None
    netns: str | None = None
    netns_inode: int | None = None


class Settled(Value):
    """A dispute of which its node speaks no more."""

    space: str
    address: Address
    node: str
    container_id: str


class ClaimLiving(Value):
    """After a restore: what a node's report claims for the pods that live there, and which disputes it ends."""

    origin: Origin
    node: str
    living: tuple[Living, ...]
    settled: tuple[Settled, ...] = ()
