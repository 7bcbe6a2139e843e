"""`pool confirm`: who is asked before it goes on without nodes that have not reported, and who is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PATH = "/v1/pools/web/confirm"


def found(*unreported: str, confirmed: bool = True) -> dict[str, Any]:
    return {"pool": "web", "confirmed": confirmed, "unreported": list(unreported), "conflicts": [], "unconfirmed": []}


def dry_runs(peer) -> list[bool]:
    """For each request whether it only looked."""
    return [asked.query.get("dry_run") == "true" for asked in peer.asked]


def test_it_asks_before_it_goes_on_without_a_node(typed, peer):
    peer.on("POST", PATH, found("w2"))
    done = typed("pool", "confirm", "web", answer="n")
    assert done.returncode == 1
    assert "not reported since the restore: w2" in done.stderr
    assert "Confirm pool web without it?" in done.stderr
    assert dry_runs(peer) == [True]
    assert typed("pool", "confirm", "web", answer="y").returncode == 0
    assert dry_runs(peer) == [True, True, False]


@pytest.mark.parametrize("stdin", ["", "y\n"])
def test_without_anybody_to_ask_it_does_not_go_on_without_a_node(ask, peer, stdin):
    peer.on("POST", PATH, found("w2"))
    done = ask("pool", "confirm", "web", "--force", stdin=stdin)
    assert done.exit_code == 2
    assert "not reported since the restore: w2" in done.stderr
    assert "stdin is no terminal: say --yes" in done.stderr
    assert dry_runs(peer) == [True]


def test_with_stdin_closed_nobody_can_be_asked_either(peer):
    peer.on("POST", PATH, found("w2"))
    ipamctl = Path(sys.executable).parent / "ipamctl"
    command = f"exec {ipamctl} --server {peer.address} pool confirm web <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "say --yes" in done.stderr) == (2, True), done.stderr
    assert dry_runs(peer) == [True]


@pytest.mark.parametrize("answer", [found(), found("w2", confirmed=False)], ids=["all-reported", "confirmed-already"])
def test_where_nothing_stands_against_it_nobody_is_asked(ask, peer, answer):
    peer.on("POST", PATH, answer)
    assert ask("pool", "confirm", "web").exit_code == 0
    assert dry_runs(peer) == [True, False]


def test_with_yes_it_goes_on_and_names_them(ask, peer):
    peer.on("POST", PATH, found("w2"))
    done = ask("pool", "confirm", "web", "--yes")
    assert (done.exit_code, "node w2 has not reported" in done.stderr) == (0, True)
    assert dry_runs(peer) == [False]
