"""The verb `events`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import columns
from ipamctl.session import Session, Verb

_NAMES = ("index", "at", "kind", "pool", "pod_ref", "address", "node", "by", "request_id", "detail")


@click.command(cls=Verb)
@click.option("--after", type=click.IntRange(min=0), metavar="INDEX", help="Only those with a higher index.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many, the oldest first; default: all.")
@click.pass_obj
def events(session: Session, /, after: int | None, limit: int | None) -> None:
    """List what happened, oldest first."""
    session.show(session.client.pages(route("events"), after=after, limit=limit), _table)


def _table(answer: Mapping[str, Any]) -> str:
    rows = [[item.get(name) for name in _NAMES] for item in answer["items"]]
    return columns(("INDEX", "AT", "KIND", "POOL", "POD", "ADDRESS", "NODE", "BY", "REQUEST", "DETAIL"), rows)
