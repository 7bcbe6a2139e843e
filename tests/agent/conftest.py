"""Owns a running server with a pool, and an agent in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent.attended import Node, attended, config_for
from tests.support.stack import Stack, running


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    (tmp_path / "server").mkdir()
    async with running(tmp_path / "server") as started:
        await started.pool()
        yield started


@pytest.fixture
async def node(stack: Stack, tmp_path: Path) -> AsyncIterator[Node]:
    async with attended(await config_for(stack, tmp_path / "w1")) as started:
        yield started
