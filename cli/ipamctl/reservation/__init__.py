"""The group `reservation`."""

from __future__ import annotations

import click

from ipamctl.reservation.add import add
from ipamctl.reservation.list import list_
from ipamctl.reservation.release import release
from ipamctl.reservation.show import show


@click.group()
def reservation() -> None:
    """What pools keep for pods."""


for _verb in (list_, show, add, release):
    reservation.add_command(_verb)
