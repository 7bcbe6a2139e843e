"""The verb `node confirm`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.pass_obj
def confirm(session: Session, /) -> None:
    """Confirm that the lost nodes are lost: ends a mass silence, and what waits for it is reclaimed."""
    answer = session.client.write("POST", route("nodes", "confirm"), {})
    session.show(answer, lambda _answer: "confirmed: what `reclaim` says of lost nodes is carried out again")
