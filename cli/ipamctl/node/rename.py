"""The verb `node rename`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("old")
@click.argument("new")
@click.pass_obj
def rename(session: Session, /, old: str, new: str) -> None:
    """Give a node another name, with all that it holds, its tokens too."""
    answer = session.client.write("POST", route("nodes", old, "rename"), {"to": new})
    session.show(answer, lambda _answer: f"node {old} is now {new}")
