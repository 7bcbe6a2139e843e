"""The verb `cluster transfer`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.cluster.table import cluster_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("name", required=False)
@click.pass_obj
def transfer(session: Session, /, name: str | None) -> None:
    """Have the member NAME lead; without a name the most advanced of the others."""
    session.show(session.client.write("POST", route("cluster", "leader"), {"name": name}), cluster_table)
