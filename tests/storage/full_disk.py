"""Owns a play on a file system of 4 MiB that runs full. Run as a program: the directory that is that file system."""

from __future__ import annotations

import sys
from pathlib import Path

from ipamd.storage.errors import DiskFull
from tests.core.world import granted
from tests.storage.driver import Driver
from tests.storage.pods import add, pool


def play(place: Path) -> None:
    """Fill it, be refused, make room, go on; raises where something is not as it should be."""
    ballast = place / "ballast"
    ballast.write_bytes(bytes(1 << 20))
    driver = Driver(place / "data")
    driver.run(pool("p", "10.0.0.0/16"))
    number = 0
    while True:
        before = driver.digest()
        entry = driver.entry(*(driver.item(add(f"t/{number + one}")) for one in range(20)))
        try:
            driver.machine.apply([entry])
        except DiskFull:
            break
        number += 20
    assert number > 100, number
    assert driver.digest() == before
    ballast.unlink()
    outcomes = [one.outcome for one in driver.machine.apply([entry])]
    assert granted(outcomes[0]) == f"10.0.{(number + 1) >> 8}.{(number + 1) & 255}", outcomes[0]
    assert driver.machine.checkpoint() == driver.machine.applied[0]
    assert driver.examine() == []
    driver.reopen()
    assert driver.machine.applied[0] == entry.index
    driver.close()


if __name__ == "__main__":
    play(Path(sys.argv[1]))
