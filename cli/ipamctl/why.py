"""The verb `why`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import columns, fields
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("pool", required=False)
@click.option("--pod", "pod_ref", metavar="NS/NAME", help="The pod that asks; default: one never seen.")
@click.option("--ifname", metavar="INTERFACE", help="Its interface; default eth0.")
@click.option("--address", "addresses", multiple=True, help="An address that it insists on. Repeatable.")
@click.pass_obj
def why(
    session: Session, /, pool: str | None, pod_ref: str | None, ifname: str | None, addresses: tuple[str, ...]
) -> None:
    """Say what a pod would get now and why, or why not: range by range. Nothing is changed."""
    query = {"pod_ref": pod_ref, "ifname": ifname, "addresses": ",".join(addresses) or None}
    if pool is not None:
        session.show(session.client.get_or_stale(route("pools", pool, "why"), query), _one)
        return
    names = [item["name"] for item in session.client.pages(route("pools"))["items"]]
    answers = [session.client.get_or_stale(route("pools", name, "why"), query) for name in names]
    session.show({"items": answers, "next": None}, _all)


def _all(answers: Mapping[str, Any]) -> str:
    return "\n\n".join(_one(answer) for answer in answers["items"]) or "there is no pool"


def _one(answer: Mapping[str, Any]) -> str:
    """The counts of each range are in its verdict; as columns of their own they are for programs."""
    head = fields((name, value) for name, value in answer.items() if name != "ranges")
    return f"{head}\n\n{columns(_TITLES, [_row(one) for one in answer['ranges']])}"


def _row(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(one[title.lower()] for title in _TITLES)


_TITLES = ("POSITION", "ORDER", "SUBNET", "FREE", "VERDICT")
