"""`make cluster`: what it prints is what can be pasted, and in the end nothing is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def running(temporary: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    env = {**os.environ, "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # or a run in the background has it ignored
    with subprocess.Popen(
        [sys.executable, "-m", "demo.cluster"], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
    ) as process:
        signal.signal(signal.SIGINT, before)
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("Ctrl-C"):
                break
        try:
            yield process, said
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(120)


def paste(said: str, *commands: str) -> str:
    """The exports that it printed, and then these commands, in a shell."""
    exports = re.findall(r"^  (export .*)$", said, re.MULTILINE)
    done = subprocess.run(
        ["bash", "-euc", "\n".join([*exports, *commands])], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_cluster_for_trying_things_out(tmp_path: Path) -> None:
    with running(tmp_path) as (process, said):
        pids = [int(pid) for pid in re.findall(r"n\d is (\d+)", said)]
        assert len(pids) == 3
        verbs = re.findall(r"^  (ipamctl .*)$", said, re.MULTILINE)
        assert len(verbs) == 4
        answers = paste(said, *verbs)
        assert "10.0.0.1/24" in answers
        assert paste(said, "ipamctl -o json cluster status").count('"reachable": true') == 3
        os.kill(pids[0], signal.SIGKILL)
        assert "10.0.0.2/24" in paste(said, "ipamctl reservation add web default/other")
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []
    for pid in pids[1:]:
        assert not Path(f"/proc/{pid}").exists()
