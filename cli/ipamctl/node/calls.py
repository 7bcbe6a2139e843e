"""The verb `node calls`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import columns
from ipamctl.session import Session, Verb, list_options

_NAMES = ("at", "verb", "pod_ref", "pools", "container_id", "code", "ms", "request_id")


@click.command(cls=Verb)
@list_options
@click.pass_obj
def calls(session: Session, /, limit: int | None, cursor: str | None) -> None:
    """List the last CNI calls that the server asked has answered, newest first."""
    session.show(session.client.pages(route("calls"), limit=limit, cursor=cursor), _table)


def _table(answer: Mapping[str, Any]) -> str:
    shortened = [{**item, "container_id": (item.get("container_id") or "")[:13]} for item in answer["items"]]
    rows = [[item.get(name) for name in _NAMES] for item in shortened]
    return columns(("AT", "VERB", "POD", "POOLS", "CONTAINER", "CODE", "MS", "REQUEST"), rows)
