"""The verb `node release`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.render import sections
from ipamctl.reservation.table import reservations_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("node")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def release(session: Session, /, node: str, yes: bool) -> None:
    """Free all that is bound on a node, for one that is gone for good. Asks before it does."""
    if not yes:
        _confirm(session, node)
    session.show(session.client.write("POST", route("nodes", node, "release"), {}), sections)


def _confirm(session: Session, /, node: str) -> None:
    session.client.get(route("nodes", node))
    held = session.client.pages(route("reservations"), {"node": node})
    click.echo(reservations_table(held), err=True)
    click.confirm(f"Free what node {node} has bound in these {len(held['items'])} reservations?", abort=True, err=True)
