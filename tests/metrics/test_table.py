"""The table of metrics: its names are as Prometheus wants them, its page and the alert rules agree with it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from ipamctl.main import cli
from ipamd.metrics import TABLE, page
from ipamd.metrics.table import BY_NAME, Kind

ROOT = Path(__file__).resolve().parents[2]
CONTRIB = ROOT / "contrib" / "prometheus"
RULES = CONTRIB / "ipamd.rules.yml"
RULES_TEST = CONTRIB / "ipamd.rules.test.yml"
NAMED = re.compile(r"\bipamd_\w+")
UNITS = ("_seconds", "_bytes", "_addresses", "_info", "_index", "_entries", "_total", "_commands", "_calls")


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


ALERTS = {rule["alert"]: rule for rule in rules() if "alert" in rule}


def test_the_page_is_made_from_the_table():
    assert page() == (ROOT / "docs/reference/metrics.md").read_text(), "python -m ipamd.metrics writes it"


def test_names_are_as_prometheus_wants_them():
    assert len(BY_NAME) == len(TABLE)
    for metric in TABLE:
        assert re.fullmatch(r"ipamd_[a-z][a-z_]*[a-z]", metric.name)
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER), metric.name
        assert not metric.name.endswith(("_count", "_sum", "_bucket", "_ms", "_days")), metric.name
        assert metric.about.endswith("."), metric.name
        assert not {"le", "job", "instance"} & set(metric.labels), metric.name
        assert metric.on_server or metric.on_agent
    durations = {metric.name for metric in TABLE if metric.kind is Kind.HISTOGRAM}
    assert {name for name in durations if not name.endswith(UNITS)} == set()


def series_of(text: str) -> set[str]:
    """The metrics that a text names; of a histogram, the histogram."""
    found = set()
    for name in NAMED.findall(text):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        found.add(base if base in BY_NAME and BY_NAME[base].kind is Kind.HISTOGRAM else name)
    return found


@pytest.mark.parametrize("path", [RULES, RULES_TEST, ROOT / "docs/howto/monitor.md"], ids=lambda path: path.name)
def test_each_metric_that_is_named_exists(path: Path):
    named = series_of(path.read_text())
    assert named
    assert named - BY_NAME.keys() == set()


def test_a_metric_that_does_not_exist_is_found():
    assert series_of("rate(ipamd_cni_call_duration_seconds_bucket[5m]) > ipamd_nonsense") - BY_NAME.keys() == {
        "ipamd_nonsense"
    }


def test_the_labels_that_rules_choose_by_exist():
    for rule in rules():
        for name, matchers in re.findall(r"\b(ipamd_\w+)\{([^}]*)\}", rule["expr"]):
            labels = set(re.findall(r"(\w+)\s*[=!]", matchers)) - {"le"}
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            assert labels <= set(BY_NAME[base if base in BY_NAME else name].labels), (name, labels)


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_says_what_is_wrong_and_what_helps(alert: str):
    said = ALERTS[alert]["annotations"]
    assert set(said) == {"summary", "command"}
    assert said["summary"].endswith(".")
    assert ALERTS[alert]["labels"]["severity"] in ("warning", "critical")
    for words in re.findall(r"ipamctl ([a-z -]+)", said["command"]):
        assert is_verb(words.split()), said["command"]


def is_verb(words: list[str]) -> bool:
    command: click.Command = cli
    for word in words:
        if not word.startswith("-") and isinstance(command, click.Group):
            if word not in command.commands:
                return False
            command = command.commands[word]
    return not isinstance(command, click.Group)


def test_each_alert_is_tried_where_it_fires_and_where_it_does_not():
    tried: dict[str, set[bool]] = {}
    for test in yaml.safe_load(RULES_TEST.read_text())["tests"]:
        for one in test.get("alert_rule_test", ()):
            tried.setdefault(one["alertname"], set()).add(bool(one.get("exp_alerts")))
    assert tried == {alert: {True, False} for alert in ALERTS}


@pytest.mark.needs_promtool
@pytest.mark.parametrize(
    "words",
    [("check", "rules", RULES), ("test", "rules", RULES_TEST), ("check", "config", "--syntax-only", "prometheus.yml")],
    ids=["rules", "tests", "config"],
)
def test_promtool_is_content(words: tuple[Any, ...]):
    done = subprocess.run(["promtool", *words], cwd=CONTRIB, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs_promtool
def test_promtool_finds_a_rule_that_does_not_fire(tmp_path: Path):
    (tmp_path / RULES.name).write_text(RULES.read_text().replace("== 0", "== -1"))
    tests = yaml.safe_load(RULES_TEST.read_text())
    (tmp_path / RULES_TEST.name).write_text(yaml.safe_dump({**tests, "tests": tests["tests"][:1]}))
    words = ["promtool", "test", "rules", RULES_TEST.name]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 1
