"""The verb `who`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from ipamctl.client import route
from ipamctl.session import Session, Verb
from ipamctl.text import printable
from ipamctl.times import TimeType, as_asked, as_local, local_of


@click.command(cls=Verb)
@click.argument("address")
@click.option("--space", help="Address space; default: default.")
@click.option(
    "--at", type=TimeType(), metavar="TIME",
    help="Who had it then: 2026-11-24T09:00:00Z, '2026-11-24 09:00' (local time), or -7d (w, d, h, m, s ago).",
)  # fmt: skip
@click.pass_obj
def who(session: Session, /, address: str, space: str | None, at: datetime | None) -> None:
    """Say who has an address, or why nobody has; or who had it at a time, as far back as events are kept."""
    path = route("addresses", address)
    if at is None:
        session.show(session.client.get_or_stale(path, {"space": space}), _sentence)
        return
    then = session.client.get_or_stale(f"{path}/history", {"space": space, "at": as_asked(at)})
    session.show(then, lambda answer: _past(address, at, answer["items"]))


def _sentence(answer: Mapping[str, Any]) -> str:
    since = f" since {answer['since']}" if answer.get("since") else ""
    return printable(f"{answer['address']} is {answer['state']}{since}: {answer['reason']}")


def _past(address: str, at: datetime, holders: Sequence[Mapping[str, Any]]) -> str:
    then = f"{address} at {as_local(at)} ({as_asked(at)})"
    if not holders:
        return printable(f"nobody had {then}")
    one = holders[0]
    where = f" on node {one['node']}" if one["node"] else ""
    since = f"from {local_of(one['from'])}" + ("" if one["from_index"] else " or before")
    until = f"until {local_of(one['to'])}" if one["to"] else "until now"
    what = f"{one['ifname'] or 'an interface'}{where}, pool {one['pool']}"
    return printable(f"{one['pod_ref']} had {then}: {what}, {since} {until}")
