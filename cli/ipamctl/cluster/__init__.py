"""The group `cluster`."""

from __future__ import annotations

import click

from ipamctl.cluster.status import status


@click.group()
def cluster() -> None:
    """The servers that keep the state together."""


cluster.add_command(status)
