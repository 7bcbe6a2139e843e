"""The verb `cluster status`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.cluster.table import cluster_table
from ipamctl.exits import Exit, note
from ipamctl.session import Session, Verb

_VERIFY_S = 60.0
"""A large state takes long to read."""

_NAMED = 5
"""So many pools that wait for an operator are told of."""

_DAYS = 30
"""From here on a certificate should be renewed."""


@click.command(cls=Verb)
@click.option("--verify", "verifies", is_flag=True, help="Have all members compare their states now.")
@click.pass_context
def status(context: click.Context, /, *, verifies: bool) -> None:
    """Show the members and the leader. Ends with status 5 if a member or the leader is missing, or states differ."""
    session: Session = context.obj
    if verifies:
        answer = session.client.write("POST", route("cluster", "verify"), at_least_s=_VERIFY_S)
    else:
        answer = session.client.get_or_stale(route("cluster"))
    session.show(answer, cluster_table)
    for member in answer["members"]:
        days = member.get("certificate_days")
        if days is not None and days < _DAYS:
            note(f"warning: the certificate of {member['name']} ends in {days} days: ipamctl tls renew")
    for pool in (answer.get("unconfirmed") or ())[:_NAMED]:
        note(f"warning: the cluster was restored, and pool {pool} withholds what was free: ipamctl pool confirm {pool}")
    wrong = [*_different(answer), *(_untold(answer) if verifies else [])]
    for sentence in wrong:
        note(sentence)
    missing = any(member["reachable"] is False for member in answer["members"])
    if answer["leader"] is None or missing or wrong:
        context.exit(Exit.DEGRADED)


def _different(answer: Mapping[str, Any]) -> list[str]:
    """A sentence for each log index at which members have different digests."""
    found: dict[int, dict[str, list[str]]] = {}
    for member in answer["members"]:
        if member.get("digest") is not None:
            found.setdefault(member["digest_index"], {}).setdefault(member["digest"], []).append(member["name"])
    return [
        f"the states at log index {index} differ: " + " against ".join(", ".join(names) for names in by_digest.values())
        for index, by_digest in found.items()
        if len(by_digest) > 1
    ]


def _untold(answer: Mapping[str, Any]) -> list[str]:
    """A sentence for each member whose state was not compared; one member alone has nobody to be compared with."""
    if len(answer["members"]) == 1:
        return []
    return [
        f"the state of {member['name']} was not compared: it gave no digest in time"
        for member in answer["members"]
        if member.get("digest") is None
    ]
