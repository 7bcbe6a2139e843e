"""The verb `reservation list`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.reservation.table import reservations_table
from ipamctl.session import Session, Verb, list_options


@click.command("list", cls=Verb)
@click.option("--pool", help="Only of this pool.")
@click.option("--pod", "pod_ref", metavar="NS/NAME", help="Only of this pod.")
@click.option("--node", help="Only with an attachment on this node.")
@click.option("--container-id", help="Only bound to this container.")
@click.option("--address", help="Only the one with this address.")
@click.option("--state", type=click.Choice(["bound", "held", "suspect"]), help="Only with an attachment in this state.")
@list_options
@click.pass_obj
def list_(session: Session, /, limit: int | None, cursor: str | None, **filters: str | None) -> None:
    """List reservations, sorted by pool and pod."""
    answer = session.client.pages(route("reservations"), filters, limit=limit, cursor=cursor)
    session.show(answer, reservations_table)
