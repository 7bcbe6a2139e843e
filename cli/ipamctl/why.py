"""The verb `why`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from ipamctl.client import Client, Query, route
from ipamctl.exits import NotFound, Refused, note
from ipamctl.render import columns, fields
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("pool", required=False)
@click.option(
    "--pod", "pod_ref", metavar="NS/NAME",
    help="The pod that asks; default: one never seen. CLUSTER: before it may be left out on its own host.",
)  # fmt: skip
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
    client, wanted = session.client, {"ifname": ifname, "addresses": ",".join(addresses) or None}
    if pool is None:
        session.show({"items": _answers(client, pod_ref, wanted), "next": None}, _all)
        return
    whole = None if pod_ref is None else _whole_name(pod_ref, _calls_if_told(client, pod_ref))
    session.show(client.get_or_stale(route("pools", pool, "why"), {"pod_ref": whole, **wanted}), _one)


def _answers(client: Client, pod_ref: str | None, wanted: Query) -> list[Any]:
    """One for each pool that matters. A pool that was asked for and is not there is the reason itself."""
    answers, missing = list[Any](), list[NotFound]()
    whole, names = (None, []) if pod_ref is None else _pools_of(client, pod_ref)
    for name in names or _all_pools(client, pod_ref):
        try:
            answers.append(client.get_or_stale(route("pools", name, "why"), {"pod_ref": whole, **wanted}))
        except NotFound as gone:
            missing.append(gone)
    if missing and not answers:
        raise missing[0]
    for one in missing:
        note(one.message)
    return answers


def _pools_of(client: Client, pod_ref: str) -> tuple[str, list[str]]:
    """The pod's whole name, and the pools that it has something of, then those that its last ADDs named.

    Why the last of them failed is said.
    """
    held, calls = _held(client, pod_ref), _calls(client, pod_ref)
    whole = pod_ref if held else _whole_name(pod_ref, calls)
    if whole != pod_ref:
        held = _held(client, whole)
    adds = [one for one in calls if _is_add(one)]
    if adds and adds[0]["code"]:
        note(f"its last ADD, at {adds[0]['at']}, was refused with code {adds[0]['code']}: {adds[0].get('msg')}")
    pools = [*(one["pool"] for one in held), *(name for one in adds for name in one["pools"])]
    return whole, list(dict.fromkeys(pools))


def _held(client: Client, pod_ref: str) -> list[Any]:
    held: list[Any] = client.pages(route("reservations"), {"pod_ref": pod_ref}, or_stale=True)["items"]
    return held


def _calls(client: Client, pod_ref: str) -> list[Any]:
    calls: list[Any] = client.pages(route("calls"), {"pod_ref": pod_ref}, or_stale=True)["items"]
    return calls


def _calls_if_told(client: Client, pod_ref: str) -> list[Any]:
    """None where they are not for whoever asks: they are not what was asked for."""
    try:
        return _calls(client, pod_ref)
    except (NotFound, Refused):
        return []


def _whole_name(pod_ref: str, calls: Sequence[Mapping[str, Any]]) -> str:
    """The pod's name with that of its cluster before it, if its calls were all for that one."""
    names = {str(one["pod_ref"]) for one in calls}
    if pod_ref in names or len(names) != 1:
        return pod_ref
    (whole,) = names
    note(f"pod {pod_ref} is {whole} here")
    return whole


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
