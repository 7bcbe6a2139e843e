"""The verb `completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ipamctl.exits import say


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    say(kind(context.find_root().command, {}, "ipamctl", "_IPAMCTL_COMPLETE").source())
