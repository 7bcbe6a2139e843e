"""The verb `cni test`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ipamctl.render import columns, fields
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("conf", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--args", "args", metavar="CNI_ARGS", help="Arguments as in CNI_ARGS: K=V;K=V.")
@click.pass_obj
def test(session: Session, /, conf: Path, args: str | None) -> None:
    """Say what the server makes of a network configuration. Nothing is changed."""
    body = {"conf": _read(conf), **({"args": args} if args is not None else {})}
    session.show(session.client.write("POST", "/v1/cni/test", body), _table)


def _read(conf: Path) -> Any:
    try:
        text = sys.stdin.read() if str(conf) == "-" else conf.read_text(encoding="utf-8")
        return json.loads(text)
    except (OSError, ValueError) as bad:
        raise click.UsageError(f"{conf} cannot be read: {bad}") from bad


def _table(answer: Mapping[str, Any]) -> str:
    head = fields((name, value) for name, value in answer.items() if name != "pools")
    rows = [(item.get("pool"), item.get("addresses")) for item in answer.get("pools", [])]
    return f"{head}\n\n{columns(('POOL', 'ADDRESSES'), rows)}"
