"""The verb `address history`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import columns
from ipamctl.session import Session, Verb, list_options

_NAMES = ("pool", "pod_ref", "ifname", "node", "from", "to")


@click.command(cls=Verb)
@click.argument("address")
@click.option("--space", help="Address space; default: default.")
@list_options
@click.pass_obj
def history(session: Session, /, address: str, space: str | None, limit: int | None, cursor: str | None) -> None:
    """List who held an address, newest first."""
    path = route("addresses", address, "history")
    session.show(session.client.pages(path, {"space": space}, limit=limit, cursor=cursor), _table)


def _table(answer: Mapping[str, Any]) -> str:
    rows = [[item.get(name) for name in _NAMES] for item in answer["items"]]
    return columns(("POOL", "POD", "INTERFACE", "NODE", "FROM", "TO"), rows)
