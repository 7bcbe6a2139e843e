"""The verb `cluster remove`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.cluster.table import cluster_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("name")
@click.pass_obj
def remove(session: Session, /, name: str) -> None:
    """Take a member out, for good: it stops, and comes back only with an empty data directory and --join."""
    session.show(session.client.write("DELETE", route("cluster", "members", name)), cluster_table)
