"""The group `cluster`."""

from __future__ import annotations

import click

from ipamctl.cluster.add import add
from ipamctl.cluster.remove import remove
from ipamctl.cluster.status import status
from ipamctl.cluster.transfer import transfer


@click.group()
def cluster() -> None:
    """The servers that keep the state together."""


for _verb in (status, add, remove, transfer):
    cluster.add_command(_verb)
