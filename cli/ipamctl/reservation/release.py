"""The verb `reservation release`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.exits import Refused
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("pool")
@click.argument("pod_ref")
@click.option("--ifname", metavar="INTERFACE", help="Only this interface of the pod.")
@click.option("--container-id", metavar="ID", help="Only while it is bound to this container; the whole id.")
@click.option("--generation", type=int, help="Only while the attachment has this generation.")
@click.option("--force", is_flag=True, help="Even if it is bound.")
@click.pass_obj
def release(session: Session, /, pool: str, pod_ref: str, **query: Any) -> None:
    """Release what a pool keeps for a pod. A stale request changes nothing and ends with status 1."""

    def table(_answer: Mapping[str, Any]) -> str:
        return f"{pool}: {pod_ref} is released"

    answer = session.client.write("DELETE", route("reservations", pool, pod_ref), query=query)
    if answer and answer.get("released") is False:
        if session.output != "table":
            session.show(answer, table)
        reason = answer.get("reason", "stale")
        raise Refused(f"{pool}: {pod_ref} is kept: {reason}, the container or generation named is not the current one")
    session.show(answer, table)
