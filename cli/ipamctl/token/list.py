"""The verb `token list`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import columns
from ipamctl.session import Session, Verb, list_options

_NAMES = ("id", "name", "role", "node", "created", "expires", "used")


@click.command("list", cls=Verb)
@list_options
@click.pass_obj
def list_(session: Session, /, limit: int | None, cursor: str | None) -> None:
    """List all tokens, without their secrets. USED is the last use, at most an hour old."""
    session.show(session.client.pages(route("tokens"), limit=limit, cursor=cursor), _table)


def _table(answer: Mapping[str, Any]) -> str:
    rows = [[item.get(name) for name in _NAMES] for item in answer["items"]]
    return columns([name.upper() for name in _NAMES], rows)
