"""Owns how a demonstration speaks: titles, lines, commands, and what must be so."""

from __future__ import annotations

import sys
from typing import NoReturn


def title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


def told(text: str) -> None:
    print(f"    {text}")


def shell(command: list[str]) -> None:
    told(f"$ {' '.join(command)}")


def expect(holds: bool, text: str, *, quiet: bool = False) -> None:
    if not holds:
        fail(f"this should be so, and is not: {text}")
    if not quiet:
        told(f"=> {text}")


def fail(text: str) -> NoReturn:
    sys.exit(f"\nThe demo failed. {text}")
