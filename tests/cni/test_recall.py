"""The memory of configurations: nothing is recalled that was not said."""

from __future__ import annotations

from typing import Any

import pytest

from ipamd.cni.dialects import read_ipam
from ipamd.cni.dialects.recall import MOST_CHARS, READ, recall_ipam
from ipamd.cni.errors import CniError
from tests.support.dialects import section

RUNTIME = {"ipRanges": [[{"subnet": "10.9.0.0/24"}]], "ips": ["10.0.0.9"]}
CONFS = [
    section(pool="p"),
    section(range="10.0.0.0/24"),
    section(range="10.0.0.0/24", around={"isGateway": True}),
    section(range="10.0.0.0/24", around={"isDefaultGateway": True}),
    section(range="10.0.0.0/24", around={"runtimeConfig": RUNTIME}),
    section(subnet="10.0.0.0/24"),
    section(subnet="10.0.0.0/24", around={"runtimeConfig": RUNTIME}),
    section(around={"runtimeConfig": RUNTIME}),
    section(range="10.0.0.0/24", exclude=[f"10.0.0.{number % 256}" for number in range(2_000)]),
]
BAD: list[dict[str, Any]] = [
    {"name": "net"},
    section(),
    section(range="x"),
    section(subnet="10.0.0.0/24", around={"runtimeConfig": 17}),
    section(subnet="10.0.0.0/24", around={"runtimeConfig": {"ipRanges": 17}}),
    {**section(), "ipam": []},
]


class Watched(dict[str, Any]):
    """An object that notes which of its keys are asked for."""

    def __init__(self, items: dict[str, Any]) -> None:
        super().__init__(items)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


@pytest.mark.parametrize("conf", CONFS)
def test_what_is_recalled_is_what_is_read(conf: dict[str, Any]) -> None:
    assert recall_ipam(conf) == recall_ipam({**conf, "colour": "blue"}) == read_ipam(conf)


def test_one_is_not_taken_for_another() -> None:
    assert len({recall_ipam(conf) for conf in CONFS}) == len({read_ipam(conf) for conf in CONFS}) == len(CONFS) - 2


@pytest.mark.parametrize("conf", BAD)
def test_what_is_bad_is_bad_each_time(conf: dict[str, Any]) -> None:
    for _ in range(2):
        with pytest.raises(CniError) as refusal:
            recall_ipam(conf)
        assert refusal.value.code == 7


@pytest.mark.parametrize("conf", CONFS)
def test_no_dialect_reads_more_than_is_remembered(conf: dict[str, Any]) -> None:
    runtime = Watched(conf.get("runtimeConfig") or {})
    watched = Watched({**conf, "runtimeConfig": runtime})
    read_ipam(watched)
    assert watched.asked <= {*READ, "runtimeConfig"}
    assert runtime.asked <= {"ipRanges"}


def test_a_very_long_one_is_read_each_time() -> None:
    conf = section(range="10.0.0.0/24", exclude=["10.0.0.1"] * (MOST_CHARS // 10))
    assert recall_ipam(conf) == recall_ipam(conf)
    assert recall_ipam(conf) is not recall_ipam(conf)
    assert recall_ipam(CONFS[1]) is recall_ipam({**CONFS[1]})
