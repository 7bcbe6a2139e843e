"""Three servers for all tests of a module: before each test all of them run, and it has a pool of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.support.cluster import Cluster

_subnets = count(1)


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three servers, whatever a test has made of them."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def three(founded: Cluster) -> Cluster:
    """The three, all ready."""
    founded.revive()
    return founded


@pytest.fixture
def pool(three: Cluster) -> str:
    """A pool that this test alone has."""
    number = next(_subnets)
    three.pool(f"p{number}", f"10.{number}.0.0/16")
    return f"p{number}"
