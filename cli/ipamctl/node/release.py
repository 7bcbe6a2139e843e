"""The verb `node release`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.exits import note
from ipamctl.render import sections
from ipamctl.reservation.table import reservations_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("node")
@click.option("--yes", is_flag=True, help="Do not ask: for a hook that has fenced the node.")
@click.option("--suspect", is_flag=True, help="Only what was bound before the node's newest boot and not seen since.")
@click.pass_obj
def release(session: Session, /, node: str, yes: bool, suspect: bool) -> None:
    """Free all that is bound on a node, for one that is gone for good. Asks before it does."""
    if not yes:
        _confirm(session, node, suspect=suspect)
    query = {"only": "suspect"} if suspect else None
    session.show(session.client.write("POST", route("nodes", node, "release"), {}, query), sections)


def _confirm(session: Session, /, node: str, *, suspect: bool) -> None:
    shown = session.client.get(route("nodes", node))
    state = {"state": "suspect"} if suspect else {}
    held = session.client.pages(route("reservations"), {"node": node, **state})
    click.echo(reservations_table(held), err=True)
    if shown.get("state") == "alive" and not suspect:
        note(f"warning: node {node} is not lost; it reported at {shown['reported']}, and its pods may well be running")
    what = "is suspect on node" if suspect else "is bound on node"
    click.confirm(f"Free what {what} {node} in these {len(held['items'])} reservations?", abort=True, err=True)
