"""The verb `pool show`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.pool.table import pool_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("name")
@click.pass_obj
def show(session: Session, /, name: str) -> None:
    """Show one pool's definition."""
    session.show(session.client.get(route("pools", name)), pool_table)
