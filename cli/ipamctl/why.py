"""The verb `why`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import sections
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("pool", required=False)
@click.option("--pod", "pod_ref", metavar="NS/NAME", help="The pod that asks; default: one never seen.")
@click.option("--ifname", metavar="INTERFACE", help="Its interface; default eth0.")
@click.pass_obj
def why(session: Session, /, pool: str | None, pod_ref: str | None, ifname: str | None) -> None:
    """Say what a pod would get now and why, or why not. Nothing is changed."""
    query = {"pod_ref": pod_ref, "ifname": ifname}
    if pool is not None:
        session.show(session.client.get_or_stale(route("pools", pool, "why"), query), sections)
        return
    names = [item["name"] for item in session.client.pages(route("pools"))["items"]]
    answers = [session.client.get_or_stale(route("pools", name, "why"), query) for name in names]
    session.show({"items": answers, "next": None}, _all)


def _all(answers: Mapping[str, Any]) -> str:
    return "\n\n".join(sections(answer) for answer in answers["items"]) or "there is no pool"
