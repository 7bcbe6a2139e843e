"""The verb `node show`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.render import sections
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("node")
@click.pass_obj
def show(session: Session, /, node: str) -> None:
    """Show what is known of a node."""
    session.show(session.client.get_or_stale(route("nodes", node)), sections)
