"""The verb `cluster status`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.exits import Exit
from ipamctl.render import columns, fields
from ipamctl.session import Session, Verb

_NAMES = ("name", "voter", "reachable", "index", "lag", "raft", "api", "member_id")


@click.command(cls=Verb)
@click.pass_context
def status(context: click.Context) -> None:
    """Show the members and the leader. Ends with status 5 if a member or the leader is missing."""
    session: Session = context.obj
    answer = session.client.get_or_stale(route("cluster"))
    session.show(answer, _table)
    if answer["leader"] is None or any(member["reachable"] is False for member in answer["members"]):
        context.exit(Exit.DEGRADED)


def _table(answer: Mapping[str, Any]) -> str:
    head = fields((name, value) for name, value in answer.items() if name != "members")
    rows = [[member.get(name) for name in _NAMES] for member in answer["members"]]
    return f"{head}\n\n{columns([name.upper() for name in _NAMES], rows)}"
