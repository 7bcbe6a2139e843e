"""The verb `why`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import Client, Query, route
from ipamctl.exits import NotFound, Refused, note
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
    """Say what a pod would get now and why, or why not: range by range. Nothing is changed.

    Without POOL: of each pool that the pod holds an address of, or that its last CNI calls on the server or agent asked
    named; if there is none, or no pod, of all pools.
    """
    query = {"pod_ref": pod_ref, "ifname": ifname, "addresses": ",".join(addresses) or None}
    if pool is not None:
        session.show(session.client.get_or_stale(route("pools", pool, "why"), query), _one)
    else:
        session.show({"items": _answers(session.client, pod_ref, query), "next": None}, _all)


def _answers(client: Client, pod_ref: str | None, query: Query) -> list[Any]:
    """One for each pool that matters. A pool that was asked for and is not there is the reason itself."""
    answers, missing = list[Any](), list[NotFound]()
    for name in (_pools_of(client, pod_ref) if pod_ref is not None else []) or _all_pools(client, pod_ref):
        try:
            answers.append(client.get_or_stale(route("pools", name, "why"), query))
        except NotFound as gone:
            missing.append(gone)
    if missing and not answers:
        raise missing[0]
    for one in missing:
        note(one.message)
    return answers


def _pools_of(client: Client, pod_ref: str) -> list[str]:
    """The pools that a pod has something of, then those that its last ADDs named; why the last one failed is said."""
    held = client.pages(route("reservations"), {"pod_ref": pod_ref}, or_stale=True)["items"]
    adds = [one for one in client.pages(route("calls"), {"pod_ref": pod_ref}, or_stale=True)["items"] if _is_add(one)]
    if adds and adds[0]["code"]:
        note(f"its last ADD, at {adds[0]['at']}, was refused with code {adds[0]['code']}: {adds[0].get('msg')}")
    return list(dict.fromkeys([*(one["pool"] for one in held), *(name for one in adds for name in one["pools"])]))


def _is_add(call: Mapping[str, Any]) -> bool:
    return bool(call["verb"] == "add")


def _all_pools(client: Client, pod_ref: str | None) -> list[str]:
    """All pools, which an agent's socket does not list."""
    try:
        return [item["name"] for item in client.pages(route("pools"), or_stale=True)["items"]]
    except Refused as refused:
        whose = "" if pod_ref is None else f", and nothing is known here of pod {pod_ref}"
        raise Refused(f"{refused.message}{whose}: name the pool", refused.problem) from None


def _all(answers: Mapping[str, Any]) -> str:
    return "\n\n".join(_one(answer) for answer in answers["items"]) or "there is no pool"


def _one(answer: Mapping[str, Any]) -> str:
    """The counts of each range are in its verdict; as columns of their own they are for programs."""
    head = fields((name, value) for name, value in answer.items() if name != "ranges")
    return f"{head}\n\n{columns(_TITLES, [_row(one) for one in answer['ranges']])}"


def _row(one: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(one[title.lower()] for title in _TITLES)


_TITLES = ("POSITION", "ORDER", "SUBNET", "FREE", "VERDICT")
