"""The verb `node show`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import fields
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("node")
@click.pass_obj
def show(session: Session, /, node: str) -> None:
    """Show what is known of a node."""
    session.show(session.client.get_or_stale(route("nodes", node)), _table)


def _table(answer: Mapping[str, Any]) -> str:
    return fields(answer.items())
