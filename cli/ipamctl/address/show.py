"""The verb `address show`."""

from __future__ import annotations

import click

from ipamctl.address.table import address_table
from ipamctl.client import route
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("address")
@click.option("--space", help="Address space; default: default.")
@click.pass_obj
def show(session: Session, /, address: str, space: str | None) -> None:
    """Show the state of an address and the reason for it."""
    session.show(session.client.get(route("addresses", address), {"space": space}), address_table)
