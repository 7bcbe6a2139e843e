"""Owns the running servers of these tests: one for each test, and one for all tests of a module that change nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.stack import Stack, running


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path) as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """For tests marked with the loop of their module, whose requests are all refused."""
    async with running(tmp_path_factory.mktemp("shared")) as started:
        yield started
