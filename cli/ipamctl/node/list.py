"""The verb `node list`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.exits import note
from ipamctl.render import columns
from ipamctl.session import Session, Verb, list_options

_NAMES = ("name", "state", "bound", "reported", "silent_s", "spooled", "conflicts", "boots", "since")


@click.command("list", cls=Verb)
@list_options
@click.pass_obj
def list_(session: Session, /, limit: int | None, cursor: str | None) -> None:
    """List all nodes that were ever seen.

    The row `unclaimed` counts interfaces that an import brought and that no node has claimed yet.
    """
    answer = session.client.pages(route("nodes"), limit=limit, cursor=cursor)
    session.show(answer, _table)
    silence = answer.get("mass_silence")
    if silence:
        note(
            f"warning: many nodes fell silent at once ({silence['since']}), so nothing of lost nodes is reclaimed;"
            " if they are gone: ipamctl node confirm"
        )


def _table(answer: Mapping[str, Any]) -> str:
    rows = [[item.get(name) for name in _NAMES] for item in answer["items"]]
    if answer.get("unclaimed"):
        unclaimed = {"name": "unclaimed", "bound": answer["unclaimed"]}
        rows.append([unclaimed.get(name) for name in _NAMES])
    return columns(("NAME", "STATE", "BOUND", "REPORTED", "SILENT S", "SPOOLED", "CONFLICTS", "BOOTS", "SINCE"), rows)
