"""The verb `cni install`."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from ipamctl.cni.place import BadInterpreter, place, with_shebang
from ipamctl.cni.static import NoStaticPlugin, static_plugin
from ipamctl.exits import Refused
from ipamctl.text import reason

_SYSTEM_PYTHON = Path("/usr/bin/python3")


@click.command()
@click.option(
    "--bin-dir", type=click.Path(path_type=Path), default=Path("/opt/cni/bin"), show_default=True,
    help="Where the container runtime looks for CNI plugins.",
)  # fmt: skip
@click.option(
    "--python", type=click.Path(path_type=Path), metavar="PATH",
    help="Interpreter that runs the plugin; default /usr/bin/python3, else the one that runs ipamctl.",
)  # fmt: skip
@click.option(
    "--static", is_flag=True,
    help="The plugin as a static program, for hosts without Python; a C compiler makes it where it is not ready-made.",
)  # fmt: skip
def install(bin_dir: Path, python: Path | None, static: bool) -> None:
    """Install the CNI plugin on this host as BIN_DIR/ipamd."""
    if static and python is not None:
        raise click.UsageError("--static needs no --python: give one of them")
    if not bin_dir.is_dir():
        raise Refused(
            f"the plugin is not installed: there is no directory {bin_dir}; make it, or name it with --bin-dir"
        )
    try:
        plugin = static_plugin() if static else with_shebang(_source().read_bytes(), python or _default_python())
        place(plugin, bin_dir / "ipamd")
    except (BadInterpreter, NoStaticPlugin) as failed:
        raise Refused(f"the plugin is not installed: {failed}") from failed
    except OSError as failed:
        raise Refused(f"the plugin is not installed: {bin_dir / 'ipamd'}: {reason(failed)}") from failed
    click.echo(f"installed {bin_dir / 'ipamd'}")


def _source() -> Path:
    spec = find_spec("ipamd_cni")
    if spec is None or spec.origin is None:
        raise Refused("the plugin is not part of this installation of ipamctl")
    return Path(spec.origin)


def _default_python() -> Path:
    return _SYSTEM_PYTHON if os.access(_SYSTEM_PYTHON, os.X_OK) else Path(sys.executable).resolve()
