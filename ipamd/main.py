"""Owns the program `ipamd`: the list of its commands. Each is loaded only when it runs, or is asked for help."""

from __future__ import annotations

from importlib import import_module

import click

from ipamd import __version__

COMMANDS = {
    "agent": "ipamd.programs.agent",
    "doctor": "ipamd.programs.doctor",
    "migrate": "ipamd.programs.offline",
    "restore": "ipamd.programs.restore",
    "serve": "ipamd.programs.serve",
    "version": "ipamd.programs.offline",
}
"""An agent is to be small: it must not load the database and the log of a server."""


class Programs(click.Group):
    """The commands by their names; a module has its command under the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command; None: there is none of that name."""
        del ctx
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = getattr(import_module(module), cmd_name)
        return command


@click.group(cls=Programs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ipamd")
def main() -> None:
    """A replicated IPAM server for CNI plugins."""


if __name__ == "__main__":
    main()
