"""The verb `node list`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import columns
from ipamctl.session import Session, Verb, list_options


@click.command("list", cls=Verb)
@list_options
@click.pass_obj
def list_(session: Session, /, limit: int | None, cursor: str | None) -> None:
    """List all nodes that were ever seen.

    The row `unclaimed` counts interfaces that an import brought and that no node has claimed yet.
    """
    session.show(session.client.pages(route("nodes"), limit=limit, cursor=cursor), _table)


def _table(answer: Mapping[str, Any]) -> str:
    rows = [[item.get(name) for name in ("name", "bound", "boots", "since")] for item in answer["items"]]
    if answer.get("unclaimed"):
        rows.append(["unclaimed", answer["unclaimed"], None, None])
    return columns(("NAME", "BOUND", "BOOTS", "SINCE"), rows)
