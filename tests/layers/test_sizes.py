"""The size of things: one noun a file, and functions that fit on a screen."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE_LINES = 400
FUNCTION_LINES = 60
PROGRAM = ("ipamd", "cli", "migrations", "bench", "demo", "tests")

LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|(?<![\w.])/(home|work|root)/\w|\bbreakpoint\(\)|\bpdb\b")
"""What is left over from somebody's work: notes to oneself, a path of one machine, a debugger."""


def modules() -> list[Path]:
    return [path for top in PROGRAM for path in sorted((ROOT / top).rglob("*.py"))]


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Each function with its length in lines, decorators left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            yield f"{node.name} in line {node.lineno}", node.end_lineno - node.lineno + 1


def tracked() -> list[Path]:
    """Every text file that belongs to the project; without git, what lies in its folders."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    names = listed.stdout.decode().split("\0") if listed.returncode == 0 else []
    return [ROOT / name for name in names if name and (ROOT / name).is_file()] or modules()


def test_no_module_is_longer_than_one_noun() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES} == {}


def test_functions_fit_on_a_screen() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {name}: {lines} lines"
        for path in modules()
        for name, lines in functions(path.read_text())
        if lines > FUNCTION_LINES
    ]
    assert long == []


def test_each_module_says_what_it_owns() -> None:
    silent = [
        str(p.relative_to(ROOT))
        for p in modules()
        if p.read_text().strip() and not ast.get_docstring(ast.parse(p.read_text()))
    ]
    assert silent == []


def test_nothing_is_left_over() -> None:
    this = Path(__file__).resolve()
    found = [
        f"{path.relative_to(ROOT)}:{number} {line.strip()}"
        for path in tracked()
        if path != this
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if LEFTOVER.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("line", ["# TODO later", "open('/home/me/x')", "breakpoint()"])
def test_a_planted_leftover_is_found(line: str) -> None:
    assert LEFTOVER.search(line)


def test_the_length_of_a_function_is_what_a_reader_sees() -> None:
    assert list(functions("x = 1\n\ndef f():\n    y = 2\n    return y\n")) == [("f in line 3", 3)]
