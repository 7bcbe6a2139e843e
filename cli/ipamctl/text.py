"""Owns text that is safe to show: names of pods and notes come from others and must not steer a terminal."""

from __future__ import annotations

import unicodedata

_HIDDEN = ("C", "Zl", "Zp")
"""Unicode categories: controls, formats (which turn the direction of text), surrogates, unassigned, line breaks."""


def printable(text: str) -> str:
    """The text with everything that is not a visible character or a plain space written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(char) if _is_hidden(char) else char for char in text)


def reason(error: Exception) -> str:
    """Why a file failed: one line, without the path, which the sentence around it names."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return " ".join(str(error).split())


def _is_hidden(char: str) -> bool:
    return not char.isprintable() or unicodedata.category(char).startswith(_HIDDEN)


def _escape(char: str) -> str:
    number = ord(char)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
