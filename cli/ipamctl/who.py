"""The verb `who`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.session import Session, Verb
from ipamctl.text import printable


@click.command(cls=Verb)
@click.argument("address")
@click.option("--space", help="Address space; default: default.")
@click.pass_obj
def who(session: Session, /, address: str, space: str | None) -> None:
    """Say who has an address, or why nobody has."""
    session.show(session.client.get_or_stale(route("addresses", address), {"space": space}), _sentence)


def _sentence(answer: Mapping[str, Any]) -> str:
    since = f" since {answer['since']}" if answer.get("since") else ""
    return printable(f"{answer['address']} is {answer['state']}{since}: {answer['reason']}")
