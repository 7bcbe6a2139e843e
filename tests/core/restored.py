"""Owns a restored world: what a backup had, in a new cluster, and what nodes report there of their containers."""

from __future__ import annotations

import copy
from typing import NamedTuple

from ipamd.core.addresses import parse_address
from ipamd.core.commands import ClaimLiving, ConfirmPool, Found, Report
from ipamd.core.inventory import Inventory, Listed, seen_of
from ipamd.core.living import claims_of
from ipamd.core.model import Member, Settings
from ipamd.core.outcomes import Outcome
from ipamd.core.restoring import Backup, restore
from tests.core.world import ORIGIN, WALL_MS, World

MEMBERS = (Member("m1", "id-1", "127.0.0.1:7481", "http://127.0.0.1:7480"),)


class Living(NamedTuple):
    """A container that lives, and the address that it has: what its node knows, whatever the cluster thinks."""

    container: str
    pod: str
    address: str
    node: str = "n1"
    alive: bool | None = True


class RestoredWorld(World):
    """A world whose state was restored from another's."""

    def restore(self) -> None:
        """Begin anew with the state as it is."""
        backup = Backup(self.log_index, self.log_ms, WALL_MS + self.log_ms, "new", WALL_MS + self.log_ms)
        self.state.carry_out(restore(self.state, self.state, backup))
        self.log_ms += 1

    def lists(self, *living: Living, node: str = "n1", boot: str | None = "b1", index: int | None = None) -> None:
        """A node's report: all that lives there, with their addresses; first what it claims, as the servers do it."""
        listed = tuple(
            Listed("k", one.container, "eth0", one.alive, one.pod, (parse_address(one.address),))
            for one in living
            if one.node == node
        )
        inventory = Inventory(node, boot, self.log_index if index is None else index, listed)
        claims = claims_of(self.state, inventory)
        if not claims.is_empty:
            self.run(ClaimLiving(ORIGIN, node, *claims))
        seen = tuple(seen_of(self.state, inventory, self.log_ms))
        self.run(Report(ORIGIN, node, boot, inventory.index, seen))

    def confirm_pool(self, pool: str = "p", *, force: bool = False) -> Outcome:
        """An operator confirms a pool."""
        return self.run(ConfirmPool(ORIGIN, pool, force))


def founded(world: World) -> None:
    """Make the world one cluster's."""
    world.run(Found(ORIGIN, "old", Settings(), MEMBERS))


def restored(world: World) -> RestoredWorld:
    """A copy of a world, restored."""
    made = RestoredWorld(copy.deepcopy(world.state), world.log_ms, world.log_index)
    made.restore()
    return made
