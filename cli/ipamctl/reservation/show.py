"""The verb `reservation show`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.reservation.table import reservation_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("pool")
@click.argument("pod_ref")
@click.pass_obj
def show(session: Session, /, pool: str, pod_ref: str) -> None:
    """Show what a pool keeps for a pod."""
    session.show(session.client.get(route("reservations", pool, pod_ref)), reservation_table)
