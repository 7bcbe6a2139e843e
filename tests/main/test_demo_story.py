"""`make demo`: the whole story comes out as it is told, with real plugins where the machine has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_story(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "demo.story"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=580,  # it only guards against a hang
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    told = [
        "=> every pod has the address it had before",
        "=> it is refused with code 110 and told why",
        "=> nothing was freed: they belong to the new containers now",
        "=> the refusal names the lost node, and the command that helps",
        "=> the ADD works",
        "=> all three addresses are free",
    ]
    places = [done.stdout.find(line) for line in told]
    assert -1 not in places, done.stdout
    assert places[:-1] == sorted(places[:-1])
    assert list(tmp_path.iterdir()) == []
