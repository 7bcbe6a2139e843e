"""The verb `cni test`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ipamctl.documents import name_of, read_document
from ipamctl.render import columns, fields
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("conf", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--args", "args", metavar="CNI_ARGS", help="Arguments as in CNI_ARGS: K=V;K=V.")
@click.pass_obj
def test(session: Session, /, conf: Path, args: str | None) -> None:
    """Say what the server makes of a network configuration. Nothing is changed.

    Of a list of plugins (.conflist) the first whose IPAM plugin is ipamd counts.
    """
    body = {"conf": _one_plugin(read_document(conf), conf), **({"args": args} if args is not None else {})}
    session.show(session.client.write("POST", "/v1/cni/test", body), _table)


def _one_plugin(conf: Any, path: Path) -> Any:
    """What a container runtime hands to a plugin: of a list its part, with the name and the version of the list."""
    if not isinstance(conf, dict) or not isinstance(conf.get("plugins"), list):
        return conf
    shared = {key: conf[key] for key in ("name", "cniVersion") if key in conf}
    found = next((plugin for plugin in conf["plugins"] if _asks_ipamd(plugin)), None)
    if found is None:
        raise click.UsageError(f"{name_of(path)} is a list of plugins, and none has ipamd as its IPAM plugin")
    return {**found, **shared}


def _asks_ipamd(plugin: Any) -> bool:
    ipam = plugin.get("ipam") if isinstance(plugin, dict) else None
    return isinstance(ipam, dict) and ipam.get("type") == "ipamd"


def _table(answer: Mapping[str, Any]) -> str:
    head = fields((name, value) for name, value in answer.items() if name != "pools")
    rows = [(item.get("pool"), item.get("addresses")) for item in answer.get("pools", [])]
    return f"{head}\n\n{columns(('POOL', 'ADDRESSES'), rows)}"
