"""The group `address`."""

from __future__ import annotations

import click

from ipamctl.address.history import history
from ipamctl.address.quarantine import quarantine
from ipamctl.address.show import show


@click.group()
def address() -> None:
    """Single addresses: their state, their history, taking them out of use."""


for _verb in (show, history, quarantine):
    address.add_command(_verb)
