"""Owns the way to pysyncobj: only the source that was audited is run, in a module of its own for each member.

The log reaches into pysyncobj by name-mangled names, so another version of it is refused. Each member runs a private
copy of the module, in which clock, chance and journal are the member's own and pickle is gone: nothing is patched for
others, and several members can live in one process, on simulated clocks too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Never

from pysyncobj.journal import Journal

from ipamd.consensus.clock import Chance, Clock
from ipamd.consensus.failures import StartRefused

VERSION = "0.3.17"
AUDITED_SHA256 = "e8bdf06797085d734df86e24ab4802fe87893dff77268565ec036f7ad4a1cfe4"
MODULE = "pysyncobj.syncobj"


class NoPickle:
    """Stands where pickle was: whoever reaches for it is stopped."""

    def __getattr__(self, name: str) -> Never:
        raise RuntimeError(f"pickle.{name} was called: nothing here is ever pickled")


class NoPoller:
    """Stands where pysyncobj waits for sockets: a tick never waits."""

    def poll(self, timeout: float) -> None:
        """Nothing to wait for: the transport has its own loop."""


def audited_source() -> tuple[Path, bytes]:
    """Where pysyncobj's Raft module lies, and its source. Raises StartRefused unless it is the audited one."""
    found = importlib.util.find_spec(MODULE)
    if found is None or found.origin is None:
        raise StartRefused(f"pysyncobj {VERSION} is not installed")
    path = Path(found.origin)
    source = path.read_bytes()
    if hashlib.sha256(source).hexdigest() != AUDITED_SHA256:
        raise StartRefused(f"{path} is not the file of pysyncobj {VERSION} that this program needs: install that")
    return path, source


@lru_cache(maxsize=1)
def _compiled(source: bytes, path: str) -> CodeType:
    return compile(source, path, "exec")


def _silent() -> logging.Logger:
    """Stands where it logs: it takes entries that are sent twice for a state machine gone wrong, and says so."""
    logger = logging.getLogger("ipamd.pysyncobj")
    logger.disabled = True
    return logger


def load(journal: Callable[[], Journal], clock: Clock, chance: Chance) -> ModuleType:
    """A private copy of the module. Raises StartRefused."""
    path, source = audited_source()
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None:
        raise StartRefused(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    exec(_compiled(source, str(path)), module.__dict__)  # noqa: S102 - the very bytes whose hash was checked
    names = {
        "pickle": NoPickle(),
        "monotonicTime": clock.monotonic_s,
        "random": chance,
        "createJournal": lambda _file: journal(),
        "createPoller": lambda _kind: NoPoller(),
        "PIPE_NOTIFIER_ENABLED": False,
        "logger": _silent(),
    }
    for name, value in names.items():
        if not hasattr(module, name):
            raise StartRefused(f"{path} has no name {name}: it is not pysyncobj {VERSION}")
        setattr(module, name, value)
    return module
