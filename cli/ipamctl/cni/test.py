"""The verb `cni test`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from ipamctl.cni.conf import read_configuration
from ipamctl.exits import Exit, note
from ipamctl.render import columns, fields
from ipamctl.session import Session, Verb

_HEAD = ("dialect", "cni_network", "cni_version", "pod_ref", "ifname", "requested", "granted", "code", "detail")
_TITLES = ("POOL", "SPACE", "ORIGIN", "ADDRESSES", "SUBNET", "EXCLUDE", "GATEWAY", "VERDICT")


@click.command(cls=Verb)
@click.argument("conf", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--args", "args", metavar="CNI_ARGS", help="Arguments as in CNI_ARGS: K=V;K=V.")
@click.option("--ifname", metavar="INTERFACE", help="The interface; default eth0.")
@click.pass_context
def test(context: click.Context, /, conf: Path, args: str | None, ifname: str | None) -> None:
    """Say what the server makes of a network configuration, and what an ADD would get. Nothing is changed.

    CONF may be a NetworkAttachmentDefinition; of a list of plugins that one counts whose IPAM plugin is ipamd (else
    whereabouts, else host-local). Ends with status 1 if the ADD would be refused.
    """
    session: Session = context.obj
    more = {key: value for key, value in (("args", args), ("ifname", ifname)) if value is not None}
    answer = session.client.write("POST", "/v1/cni/test", {"conf": read_configuration(conf), **more})
    session.show(answer, _tables)
    for sentence in answer["notes"]:
        note(sentence)
    if not answer["granted"]:
        note(answer["detail"])
        context.exit(Exit.REFUSED)


def _tables(answer: Mapping[str, Any]) -> str:
    parts = [fields([(name, answer[name]) for name in _HEAD if answer[name] not in (None, "", [])])]
    if answer["pools"]:
        parts.append(columns(_TITLES, [row for pool in answer["pools"] for row in _rows(pool)]))
    if answer["result"] is not None:
        parts.append(json.dumps(answer["result"]))
    return "\n\n".join(parts)


def _rows(pool: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """A row for each range, whose verdict begins with its bounds; what is the pool's own stands in the first."""
    own: tuple[Any, ...] = (pool["pool"], pool["space"], pool["origin"], pool["addresses"])
    for one in pool["ranges"]:
        yield (*own, *(one[key] for key in ("subnet", "exclude", "gateway", "verdict")))
        own = ("", "", "", "")
