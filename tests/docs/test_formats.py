"""The page of formats is what the program has."""

from __future__ import annotations

from pathlib import Path

from ipamd.formats import FORMATS, page

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_formats_is_made_from_the_program() -> None:
    assert page() == (ROOT / "docs/reference/formats.md").read_text(), "python -m ipamd.formats writes it"


def test_each_format_is_there_once() -> None:
    names = [one.what for one in FORMATS]
    assert len(set(names)) == len(names)
