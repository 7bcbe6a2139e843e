"""The verb `token create`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.exits import Refused, note
from ipamctl.render import fields
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("name")
@click.option(
    "--role", type=click.Choice(["reader", "operator", "admin", "node", "enrol"]), required=True,
    help="What its bearer may do.",
)  # fmt: skip
@click.option("--node", help="The node that a node token is bound to.")
@click.option("--ttl", "ttl_s", type=click.IntRange(min=1), metavar="SECONDS", help="How long it is valid.")
@click.pass_obj
def create(session: Session, /, **options: Any) -> None:
    """Make a token. Its secret is shown this once."""
    body = {name: value for name, value in options.items() if value is not None}
    answer = session.client.write("POST", route("tokens"), body)
    if answer.get("secret") is None:
        raise Refused(f"the answer with the secret got lost: revoke the token {answer['id']} and make another")
    note("keep the secret now: it is not shown again")
    session.show(answer, _table)


def _table(answer: Mapping[str, Any]) -> str:
    return fields(answer.items())
