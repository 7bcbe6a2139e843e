"""Owns the steady load of an upgrade: pods that come and go, each call repeated as a runtime repeats it, and no longer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import NamedTuple, Self

from tests.support.cluster import Away

PATIENCE_S = 60.0
"""How long a runtime goes on asking for one pod."""

PAUSE_S = 0.3
"""Between two of its attempts."""

LIVING = 5
"""A caller has so many pods; when the next one comes the oldest goes."""


class Said(NamedTuple):
    """What a call came to: the CNI code (0: done), and for an ADD the address."""

    code: int
    address: str = ""


Call = Callable[[str, str, str], Said]
"""Makes a call: verb, container and pod. Raises Away."""


class Steady:
    """Callers, each in a thread. `with` runs them."""

    def __init__(self, callers: dict[str, Call]) -> None:
        self.living: dict[str, str] = {}
        """Address by pod."""

        self.failures: list[str] = []
        self.added = self.repeated = 0
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=item, daemon=True) for item in callers.items()]

    def _work(self, name: str, call: Call) -> None:
        mine: list[str] = []
        for number in count():
            if self._done.is_set():
                return
            pod = f"{name}/p{number}"
            said = self._until_done(call, "add", pod)
            if said is not None:
                self._note(pod, said.address)
                mine.append(pod)
            if len(mine) > LIVING:
                gone = mine.pop(0)
                with self._lock:
                    del self.living[gone]
                self._until_done(call, "del", gone)

    def _until_done(self, call: Call, verb: str, pod: str) -> Said | None:
        deadline_s, said = time.monotonic() + PATIENCE_S, Said(-1)
        while time.monotonic() < deadline_s:
            with suppress(Away):
                said = call(verb, pod.replace("/", "-"), pod)
                if said.code == 0:
                    return said
            self.repeated += 1
            time.sleep(PAUSE_S)
        self.failures.append(f"{verb} of {pod} came to nothing within {PATIENCE_S} s, last with code {said.code}")
        return None

    def _note(self, pod: str, address: str) -> None:
        with self._lock:
            self.added += 1
            other = next((one for one, theirs in self.living.items() if theirs == address), None)
            if other is not None:
                self.failures.append(f"{address} was given to {pod} while {other} had it")
            self.living[pod] = address

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE_S)
