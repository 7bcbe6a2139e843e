"""Owns the machine that the tests of the store share: a real one on a real file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.driver import Driver


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    made = Driver(tmp_path / "data")
    yield made
    made.close()
