"""The verb `who`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.session import Session, Verb
from ipamctl.text import printable


@click.command(cls=Verb)
@click.argument("address")
@click.option("--space", help="Address space; default: default.")
@click.pass_obj
def who(session: Session, /, address: str, space: str | None) -> None:
    """Say who has an address, or why nobody has."""
    session.show(session.client.get_or_stale(route("addresses", address), {"space": space}), _sentence)


def _sentence(answer: Mapping[str, Any]) -> str:
    parts = [f"{answer['address']} is {answer['state']}"]
    if answer.get("pod_ref"):
        parts.append(f"pod {answer['pod_ref']}, interface {answer.get('ifname') or '-'}")
    if answer.get("node"):
        parts.append(f"node {answer['node']}")
    if answer.get("pools"):
        parts.append("pool " + ", ".join(answer["pools"]))
    if answer.get("since"):
        parts.append(f"since {answer['since']}")
    return printable("; ".join(parts)) + (f"\n{printable(answer['reason'])}" if answer.get("reason") else "")
