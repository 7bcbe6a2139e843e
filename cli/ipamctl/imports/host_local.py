"""The verb `import host-local`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ipamctl.imports.progress import Bar
from ipamctl.imports.sources import read_configurations, read_networks
from ipamctl.imports.verb import import_options, run
from ipamctl.session import Session, Verb


@click.command("host-local", cls=Verb)
@click.argument("path", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--node", metavar="NODE", help="The node whose directory it is; default: whoever names a container.")
@import_options
@click.pass_obj
def host_local(
    session: Session, /, path: Path, node: str | None, confs: tuple[Path, ...], cluster: str | None, *, dry_run: bool
) -> None:
    """Take over the directories of host-local.

    PATH is its data directory (/var/lib/cni/networks unless the configuration has a dataDir), or the directory of one
    network in it. The configurations say which subnets the addresses are of: give them with --conf.

    Everything is imported or nothing. Again, it adds what is new.
    """

    def read(bar: Bar) -> dict[str, Any]:
        return {"networks": read_networks(path, bar.step("reading")), "confs": read_configurations(confs)}

    run(session, read, {"format": "host-local", "dry_run": dry_run, "node": node, "cluster": cluster})
