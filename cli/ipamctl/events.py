"""The verb `events`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.exits import say
from ipamctl.following import Follower
from ipamctl.render import as_yaml, cell, columns
from ipamctl.session import Session, Verb

_NAMES = ("index", "at", "kind", "pool", "pod_ref", "address", "node", "by", "request_id", "detail")


@click.command(cls=Verb)
@click.option("--follow", is_flag=True, help="Go on with those that come, one a line (json: one object a line).")
@click.option("--new", is_flag=True, help="With --follow: only those that come from now on.")
@click.option("--after", type=click.IntRange(min=0), metavar="INDEX", help="Only those with a higher index.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many, the oldest first; default: all.")
@click.option("--pool", help="Only those of a pool.")
@click.option("--pod", "pod_ref", metavar="POD_REF", help="Only those of a pod.")
@click.option("--node", help="Only those of a node.")
@click.option("--address", help="Only those of an address.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only those of a kind; repeatable.")
@click.pass_obj
def events(
    session: Session,
    /,
    *,
    follow: bool,
    new: bool,
    after: int | None,
    limit: int | None,
    kinds: tuple[str, ...],
    **wanted: str | None,
) -> None:
    """List what happened, oldest first. With --follow other servers go on where one ends, without gaps or doubles."""
    filters = {**wanted, "kind": ",".join(kinds) or None}
    if new and (after is not None or not follow):
        raise click.UsageError("--new goes with --follow, and without --after")
    if not follow:
        session.show(session.client.pages(route("events"), filters, after=after, limit=limit), _table)
        return
    _follow(session, Follower(session.client, filters, "latest" if new else str(after or 0)), limit)


def _follow(session: Session, follower: Follower, limit: int | None) -> None:
    """Print events until the limit or an interrupt."""
    try:
        for number, event in enumerate(follower.events(), 1):
            say(_line(event, session.output))
            if number == limit:
                return
    except KeyboardInterrupt:
        return


def _line(event: Mapping[str, Any], output: str) -> str:
    if output == "json":
        return json.dumps(event)
    if output == "yaml":
        return f"---\n{as_yaml(event)}"
    return "  ".join(cell(event.get(name)) for name in _NAMES)


def _table(answer: Mapping[str, Any]) -> str:
    rows = [[item.get(name) for name in _NAMES] for item in answer["items"]]
    return columns(("INDEX", "AT", "KIND", "POOL", "POD", "ADDRESS", "NODE", "BY", "REQUEST", "DETAIL"), rows)
