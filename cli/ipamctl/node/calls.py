"""The verb `node calls`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import columns
from ipamctl.session import Session, Verb, list_options

_NAMES = ("at", "verb", "pod_ref", "pools", "container_id", "code", "spooled", "ms", "request_id", "msg")


@click.command(cls=Verb)
@click.option("--pod", "pod_ref", metavar="NS/NAME", help="Only those for this pod.")
@list_options
@click.pass_obj
def calls(session: Session, /, pod_ref: str | None, limit: int | None, cursor: str | None) -> None:
    """List the last CNI calls that the server or agent asked has answered, newest first, and how many DELs wait."""
    found = session.client.pages(route("calls"), {"pod_ref": pod_ref}, limit=limit, cursor=cursor)
    session.show(found, _table)


def _table(answer: Mapping[str, Any]) -> str:
    shortened = [_shortened(item) for item in answer["items"]]
    rows = [[item.get(name) for name in _NAMES] for item in shortened]
    table = columns(("AT", "VERB", "POD", "POOLS", "CONTAINER", "CODE", "SPOOLED", "MS", "REQUEST", "WHY"), rows)
    waiting = answer.get("spooled") or 0
    return table if not waiting else f"{table}\nDELs that wait for the cluster: {waiting}"


def _shortened(item: Mapping[str, Any]) -> dict[str, Any]:
    container_id, spooled = (item.get("container_id") or "")[:13], "yes" if item.get("spooled") else None
    return {**item, "container_id": container_id, "spooled": spooled}
