"""Owns a program that repairs a data directory again and again, dying a step later each time: DATA_DIR, PLACE, DIGEST.

It dies at what Python's audit events show of files. With ROUNDS=1 at each of them, else at some. It prints at how many.
"""

from __future__ import annotations

import os
import shutil
import sys
from itertools import count
from pathlib import Path

from ipamd.programs.doctor import _repaired
from ipamd.storage.doctor import digest_of

EVENTS = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.copyfile", "shutil.copytree"})
DIED = 9
STRIDE = max(1, round(0.6 / float(os.environ.get("ROUNDS", "0.1"))))


def repaired(data_dir: Path, steps: int) -> bool:
    """Whether a repair was done before its `steps`th step; it runs in a process of its own."""
    child = os.fork()
    if child == 0:
        left = [steps]

        def watch(event: str, _arguments: object) -> None:
            if event in EVENTS:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(DIED)

        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        sys.addaudithook(watch)
        _repaired(data_dir)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, DIED), code
    return code == 0


def main() -> None:
    """Die everywhere."""
    source, place, digest = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    original = {path.name: path.read_bytes() for path in source.glob("state.db")}
    died = 0
    for steps in count(step=STRIDE):
        data_dir = place / str(steps)
        shutil.copytree(source, data_dir)
        if repaired(data_dir, steps):
            break
        died += 1
        changed = (data_dir / "state.db").read_bytes() if (data_dir / "state.db").exists() else b""
        copies = list(data_dir.glob("before-repair-*"))
        if changed != original["state.db"]:
            assert copies, f"step {steps} changed what no copy was kept of"
        for copy in copies:
            assert (copy / "state.db").read_bytes() == original["state.db"]
        assert repaired(data_dir, 1 << 30)
        assert digest_of(data_dir) == digest, f"step {steps}"
    print(died)  # noqa: T201 - what it is run for


if __name__ == "__main__":
    main()
