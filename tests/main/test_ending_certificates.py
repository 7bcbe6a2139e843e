"""Thirty days before a certificate or its authority ends the log says so, on servers and on agents."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pytest

from ipamctl.tls import authority
from ipamd.agent.authority import AuthorityWatch
from ipamd.credentials import days_of, trust_in
from tests.support.agent import Agent
from tests.support.certificates import Shop
from tests.support.cluster import Cluster
from tests.support.host import wait_until
from tests.support.scripted import TurnedClock
from tests.support.server import free_port

DAY_MS = 86_400_000


def warnings_of(log: str) -> list[str]:
    return [line for line in log.splitlines() if '"level": "warning"' in line and " ends in " in line]


@pytest.mark.parametrize(
    ("certificate_days", "authority_days", "sentence"),
    [
        (29, 3650, "the certificate of this member ends in 28 days: ipamctl tls renew"),
        (730, 20, "the authority of the members' certificates ends in 19 days"),
        (40, 3650, None),
    ],
)
def test_a_server_warns_of_the_one_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate_days: int, authority_days: int, sentence: str | None
) -> None:
    monkeypatch.setattr(authority, "CERTIFICATE_DAYS", certificate_days)
    monkeypatch.setattr(authority, "AUTHORITY_DAYS", authority_days)
    with Cluster(tmp_path, 1) as cluster:
        member = cluster["n1"]
        if sentence is not None:
            wait_until(lambda: warnings_of(member.log), 60, "there is no warning")
        time.sleep(0.5)  # for one that must not come
        assert len(warnings_of(member.log)) == (sentence is not None)
        assert sentence is None or sentence in warnings_of(member.log)[0]


def test_an_agent_warns_of_the_authority_that_it_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authority, "AUTHORITY_DAYS", 5)
    shop = Shop(tmp_path / "tls")
    nobody = f"https://127.0.0.1:{free_port()}"
    with Agent(tmp_path / "a", "w1", [nobody], "--tls-ca", str(shop.ca)) as agent:
        wait_until(lambda: warnings_of(agent.log), 60, "there is no warning")
        (line,) = warnings_of(agent.log)
        assert "the authority in tls-ca ends in 4 days: no server will be trusted then" in line


def test_it_is_said_once_a_day_and_not_before_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(authority, "AUTHORITY_DAYS", 60)
    shop, clock = Shop(tmp_path), TurnedClock()
    clock.epoch_ms = int(time.time() * 1000)
    days = days_of(trust_in(shop.ca), clock.wall_ms)
    watch = AuthorityWatch(days, clock)
    said = []
    with caplog.at_level(logging.WARNING, "ipamd.agent"):
        for _ in range(62):
            watch.look()
            watch.look()
            said.append((days(), len(caplog.records)))
            caplog.clear()
            clock.epoch_ms += DAY_MS
            clock.now_s += DAY_MS / 1000
    assert said == [(left, int(left < 30)) for left in range(59, -3, -1)]


def test_the_systems_authorities_are_the_systems_business() -> None:
    assert days_of(trust_in(None), lambda: 0)() is None
