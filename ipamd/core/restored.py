"""Owns the nouns of a state that came from a backup: what it was, what waits to be confirmed, what is in conflict.

A backup is older than reality: what was free in it may have been given since. So every pool begins unconfirmed, and
what an unconfirmed pool would give is *withheld* in its space: nobody gets it by chance. Reports claim what pods
really hold; an operator confirms the rest, pool by pool.
"""

from __future__ import annotations

from ipamd.core.addresses import Address
from ipamd.core.values import Value


class Restored(Value):
    """The state was restored, and not every pool was confirmed since."""

    index: int
    """What was bound up to this log index is the backup's word; later entries are the new cluster's own."""

    log_ms: int
    """Reports with a later time were made since."""

    at_ms: int
    backup_ms: int
    """The wall clock of the last entry that the backup has."""

    cluster_id: str
    """The cluster that the backup is of."""


class Unconfirmed(Value):
    """A pool whose addresses are withheld: it came from the backup, or was made since."""

    pool_id: int


class Disputed(Value):
    """A container of a node uses an address that is recorded for another pod: neither is given it until one lets go."""

    space: str
    address: Address
    node: str
    container_id: str
    ifname: str
    pod_ref: str
    since_ms: int
