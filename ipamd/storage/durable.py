"""Owns making what was written outlive a loss of power."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Make a file's bytes durable, or the names in a directory. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
