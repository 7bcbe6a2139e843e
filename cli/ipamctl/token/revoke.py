"""The verb `token revoke`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("token_id", metavar="ID")
@click.pass_obj
def revoke(session: Session, /, token_id: str) -> None:
    """Revoke a token by its id."""
    session.show(
        session.client.write("DELETE", route("tokens", token_id)), lambda _answer: f"token {token_id} is revoked"
    )
