"""Pages that name many commands name such as there are, with options and files that there are.

What can be run of them, test_blocks runs.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from ipamctl.main import cli

ROOT = Path(__file__).resolve().parents[2]
HOWTO = ROOT / "docs" / "howto"
PAGES = [*sorted(HOWTO.glob("install-*.md")), HOWTO / "troubleshooting.md"]
FENCE = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    """The lines of a page's shell blocks, and the commands in its text."""
    text = page.read_text()
    lines = "".join(FENCE.findall(text)).splitlines()
    return [*lines, *re.findall(r"`(ipamctl [a-z][^`]*)`", FENCE.sub("", text))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_verb_has_the_options_that_the_page_gives_it(page: Path) -> None:
    named = [shlex.split(line) for line in commands(page)]
    ours = [words[1:] for words in named if words and words[0].rpartition("/")[2] == "ipamctl"]
    assert ours
    for words in ours:
        command, rest = _verb(words)
        context = click.Context(command)
        given, left, _ = command.make_parser(context).parse_args(list(rest))
        arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
        assert left == [], words
        for parameter in arguments:
            assert given.get(parameter.name or "") is not None or not parameter.required, words


def _verb(words: list[str]) -> tuple[click.Command, list[str]]:
    command: click.Command = cli
    while isinstance(command, click.Group):
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_file_of_the_project_is_there(page: Path) -> None:
    for path in re.findall(r"(?<![\w/.])contrib/[\w./-]+", page.read_text()):
        assert (ROOT / path).exists(), path


def test_there_is_a_page_for_each_way() -> None:
    assert {page.stem for page in HOWTO.glob("install-*.md")} == {
        "install-daemonset",
        "install-nomad",
        "install-podman",
        "install-systemd",
    }
