"""The group `node`."""

from __future__ import annotations

import click

from ipamctl.node.calls import calls
from ipamctl.node.confirm import confirm
from ipamctl.node.forget import forget
from ipamctl.node.list import list_
from ipamctl.node.release import release
from ipamctl.node.rename import rename
from ipamctl.node.show import show
from ipamctl.node.sync import sync


@click.group()
def node() -> None:
    """The hosts that run pods."""


for _verb in (list_, show, calls, sync, release, confirm, rename, forget):
    node.add_command(_verb)
