"""How results look: to a person at a terminal, and to a program that reads them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ipamctl.render import as_yaml, cell, columns
from ipamctl.text import printable

LONG = {"name": "p" * 100, "space": "default", "ranges": [[{"subnet": "10.0.0.0/24"}]], "strategy": "lowest"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("", "-"),
        ([], "-"),
        ({}, "-"),
        (0, "0"),
        (False, "no"),
        (True, "yes"),
        (["a", 1], "a, 1"),
        ({"a": {"b": [1]}}, "a=b=1"),
        ("[bold]x[/] :smile:", "[bold]x[/] :smile:"),
        ("a\tb\r\n", "a\\x09b\\x0d\\x0a"),
    ],
)
def test_a_cell_shows_any_value(value, text):
    assert cell(value) == text
    assert columns(("A",), [[value]]) == f"A\n{text}"


@pytest.mark.parametrize(
    "char", ["\0", "\x1b", "\x7f", "\x85", "\x9b", "\u200b", "\u2028", "\u202e", "\ud800", "\U000e0001"]
)
def test_what_could_steer_a_terminal_is_written_as_an_escape(char):
    assert printable(f"a{char}b").isascii()
    assert printable(f"a{char}b").isprintable()


def test_visible_characters_stay():
    assert printable("Büro 東京 é") == "Büro 東京 é"


def test_yaml_reads_back_as_it_was():
    value = {"b": ["10.0.0.1", "yes", "1e3", "\x1b\u2028"], "a": None, "n": 2**53}
    assert yaml.safe_load(as_yaml(value)) == value
    assert list(yaml.safe_load(as_yaml(value))) == ["b", "a", "n"]


def test_a_program_gets_lines_as_long_as_they_are(ask, peer):
    peer.on("GET", "/v1/pools", {"items": [LONG], "next": None})
    assert ask("pool", "list").stdout.splitlines()[1].split() == ["p" * 100, "default", "10.0.0.0/24", "lowest"]


def test_a_person_gets_lines_as_wide_as_the_terminal(peer):
    peer.on("GET", "/v1/pools", {"items": [LONG], "next": None})
    mine, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": "60", "TERM": "xterm"}
    command = [str(Path(sys.executable).parent / "ipamctl"), "--server", peer.address, "pool", "list"]
    try:
        assert subprocess.run(command, stdout=theirs, env=env, check=False, timeout=60).returncode == 0
        shown = os.read(mine, 65536).decode()
    finally:
        os.close(mine)
        os.close(theirs)
    assert "\x1b[1mNAME" in shown
    lines = shown.splitlines()
    assert len(lines) > 2
    assert all(len(line) <= 60 for line in lines[1:])
