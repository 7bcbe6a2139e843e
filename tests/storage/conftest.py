"""Owns the machine that the tests of the store share: a real one on a real file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.driver import Driver, memory_dir


@pytest.fixture
def driver() -> Iterator[Driver]:
    with tempfile.TemporaryDirectory(dir=memory_dir()) as place:
        made = Driver(Path(place) / "data")
        yield made
        made.close()
