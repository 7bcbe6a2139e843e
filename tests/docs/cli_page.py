"""Owns docs/reference/cli.md: made from the commands themselves. `python -m tests.docs.cli_page` writes it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from ipamctl.main import cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"

INTRODUCTION = """\
# ipamctl

<!-- Made from the commands by `python -m tests.docs.cli_page`; edit their texts there. -->

`ipamctl [OPTIONS] GROUP VERB [ARGUMENTS]` is a client of the [HTTP API](api.md). Without `--server` it asks the node socket of this
host, where whoever can open the file is administrator. Several servers are tried in turn; writes carry an idempotency key, so that
trying the next one is safe.

Every option before the group can also stand in `~/.config/ipamctl/config.toml` or in the environment as `IPAMCTL_NAME`. `-o json` prints the
API's objects; lists print `{"items": [...], "next": ...}`. Exit statuses are listed under [errors](errors.md).

`node release` and `pool confirm` ask before they do what cannot be taken back. Where stdin is no terminal nobody can be asked: they end with
status 2 and change nothing, unless `--yes` is said. The other verbs never ask; a pool or a reservation that is in use they leave alone
without `--force`.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, "## Options before the group\n", *options(cli), ""]
    for name, group in sorted(cli.commands.items()):
        parts += [f"## {name}\n", f"{text(group)}\n"]
        if isinstance(group, click.Group):
            for verb, command in sorted(group.commands.items()):
                parts += described(f"{name} {verb}", command)
        else:
            parts += [f"`{usage(f'ipamctl {name}', group)}`\n", *options(group), ""]
    return "\n".join(parts).rstrip() + "\n"


def described(name: str, command: click.Command) -> list[str]:
    """A verb of a group."""
    return [f"### {name}\n", f"`{usage(f'ipamctl {name}', command)}`\n", f"{text(command)}\n", *options(command), ""]


def usage(name: str, command: click.Command) -> str:
    """The command line in short."""
    pieces = command.collect_usage_pieces(click.Context(command, info_name=name))
    return " ".join([name, *pieces])


def text(command: click.Command) -> str:
    """What a command says of itself."""
    return inspect.cleandoc(command.help or "").replace("\b\n", "")


def options(command: click.Command) -> Iterator[str]:
    """One line for each option."""
    context = click.Context(command)
    for option in command.params:
        if isinstance(option, click.Option) and option.name != "help" and not option.hidden:
            names = ", ".join([*option.opts, *option.secondary_opts])
            value = "" if option.is_flag or option.count else f" {option.make_metavar(context)}"
            yield f"- `{names}{value}`: {option.help}"


if __name__ == "__main__":
    PAGE.write_text(page())
