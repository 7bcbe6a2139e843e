"""The verb `note`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("text")
@click.option("--pool", help="The pool that it is about.")
@click.option("--node", help="The node that it is about.")
@click.pass_obj
def note(session: Session, /, text: str, pool: str | None, node: str | None) -> None:
    """Put a note among the events, for those who look later: what was done to a node, a pool, a switch."""
    given = {"text": text, "pool": pool, "node": node}
    session.client.write("POST", route("events"), {name: value for name, value in given.items() if value is not None})
