"""A real Prometheus, with the configuration and the rules that contrib offers, scrapes a real server over TLS."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cluster import Cluster
from tests.support.server import free_port

CONTRIB = Path(__file__).resolve().parents[2] / "contrib" / "prometheus"
UP_S = 180.0

pytestmark = pytest.mark.needs_promtool


def configured(directory: Path, cluster: Cluster, port: int) -> Path:
    """The example, but for where things lie, and how often Prometheus looks."""
    config = yaml.safe_load((CONTRIB / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    shutil.copy(CONTRIB / "ipamd.rules.yml", directory)
    token = directory / "ipamd.token"
    done = cluster.ctl("token", "create", "prometheus", "--role", "reader", "--secret-file", str(token))
    assert done.returncode == 0, done.stderr
    member = cluster["n1"]
    (job,) = (one for one in config["scrape_configs"] if one["job_name"] == "ipamd")
    job["authorization"]["credentials_file"] = str(token)
    job["tls_config"]["ca_file"] = member.tls[5]
    job["static_configs"] = [{"targets": [f"127.0.0.1:{member.port}"]}]
    config["scrape_configs"] = [job]
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    return directory / "prometheus.yml"


class Prometheus:
    """One that runs."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]

    def value(self, query: str) -> float:
        """The one value of a query, once there is one."""
        deadline = time.monotonic() + UP_S
        while time.monotonic() < deadline:
            try:
                found = self.ask("query", query=query)["result"]
            except (urllib.error.URLError, ConnectionError):
                found = []
            if len(found) == 1:
                return float(found[0]["value"][1])
            time.sleep(0.2)
        raise AssertionError(f"{query} has no value")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("c"), 1) as one:
        yield one


@pytest.fixture(scope="module")
def prometheus(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    directory, port = tmp_path_factory.mktemp("p"), free_port()
    command = [
        "prometheus",
        f"--config.file={configured(directory, cluster, port)}",
        f"--storage.tsdb.path={directory / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (directory / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield Prometheus(port)
        finally:
            process.terminate()
            process.wait(30)


def test_it_scrapes_over_tls_with_a_readers_token(prometheus: Prometheus, cluster: Cluster) -> None:
    cluster.pool("p", "10.1.0.0/29")
    for number in range(6):
        assert cluster["n1"].add(f"c{number}", f"t/{number}", pool="p").code == 0
    assert prometheus.value("up") == 1
    assert prometheus.value("ipamd_raft_is_leader") == 1
    assert prometheus.value('ipamd_pool_addresses{pool="p",state="bound"}') == 6
    assert prometheus.value('ipamd:pool_spent:ratio{pool="p"}') == 1
    assert prometheus.value('ALERTS{alertname="IpamdPoolExhausted"}') == 1


def test_it_understands_each_rule(prometheus: Prometheus) -> None:
    prometheus.value("ipamd:pool_spent:ratio")
    rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
    written = yaml.safe_load((CONTRIB / "ipamd.rules.yml").read_text())["groups"]
    assert len(rules) == sum(len(group["rules"]) for group in written)
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] == "err"] == []
