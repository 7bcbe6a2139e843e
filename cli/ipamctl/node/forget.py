"""The verb `node forget`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("node")
@click.pass_obj
def forget(session: Session, /, node: str) -> None:
    """Forget a node that holds nothing and is gone. Its tokens are revoked; its name may be enrolled anew."""
    session.show(session.client.write("DELETE", route("nodes", node)), lambda _answer: f"node {node} is forgotten")
