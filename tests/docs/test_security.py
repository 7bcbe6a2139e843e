"""The page about security: what it points to is there, and it answers all that static analysis finds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text()
ANALYSED = ("ipamd", "cli", "contrib")


def findings() -> set[tuple[str, str]]:
    """What bandit finds: the rule, and the file."""
    command = [sys.executable, "-m", "bandit", "--quiet", "--recursive", "--format", "json", *ANALYSED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert report["errors"] == []
    return {(one["test_id"], one["filename"].removeprefix("./")) for one in report["results"]}


@pytest.mark.timeout(1000)
def test_every_finding_is_answered_and_every_answer_is_to_one() -> None:
    assert set(re.findall(r"^\| (B\d+) \| `([^`]+)` \|", PAGE, re.MULTILINE)) == findings()


def test_code_and_tests_of_each_threat_are_there() -> None:
    named = re.findall(r"`((?:ipamd|cli|tests)/[\w/.]+\.py)`", PAGE)
    assert len(named) > 40
    assert [name for name in named if not (ROOT / name).is_file()] == []
