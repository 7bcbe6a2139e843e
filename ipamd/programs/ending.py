"""Owns how a process of this program begins and ends: its log, its signals, its exit status."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import NoReturn, Protocol

import click
import uvloop

from ipamd import logs, system
from ipamd.notify import notify
from ipamd.settings import SettingsError

logger = logging.getLogger("ipamd")

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_FATAL = 70
"""EX_SOFTWARE of sysexits.h: the state cannot be trusted any more; a supervisor may start it again."""

COLLECTED_AFTER = 20_000
"""How many new objects are looked through for cycles at once. At 700, the default, that took 5 % of a busy leader."""

STOP_S = 9.0

Refusals = tuple[type[Exception], ...]


class Running(Protocol):
    """A running program."""

    def reload(self) -> None:
        """SIGHUP: read again what may have changed."""


def usage(error: SettingsError) -> NoReturn:
    """Say all mistakes in the settings, and end."""
    for mistake in error.mistakes:
        click.echo(f"ipamd: {mistake}", err=True)
    sys.exit(EXIT_USAGE)


def run(work: Coroutine[None, None, None], refusals: Refusals) -> None:
    """Run a program to its end. `refusals`: what its operator can do something about; one sentence, no traceback."""
    system.raise_file_limit()
    try:
        uvloop.run(work)
    except refusals as error:
        logger.error("%s", error)  # noqa: TRY400 - a sentence for the operator, no traceback
        sys.exit(EXIT_REFUSED)
    except Exception:
        logger.exception("the program ended by a fault of its own")  # the process's boundary: this too is one line
        sys.exit(EXIT_FATAL)


async def until_signalled(make: Callable[[], AbstractAsyncContextManager[Running]]) -> None:
    """Run until a signal says that it is enough. The second signal changes nothing: the end has its own limit."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a program runs in a task")
    stopping = threading.Event()

    def stop() -> None:
        if not stopping.is_set():
            stopping.set()
            logger.info("stopping")
            notify("STOPPING=1")
            _limit_the_end()
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    with suppress(asyncio.CancelledError):
        async with make() as program:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, program.reload)
            _spare_the_collector()
            await asyncio.Event().wait()
    logger.info("stopped")


def _spare_the_collector() -> None:
    """What a start has made stays to the end, and requests leave hardly a cycle behind."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)


def _limit_the_end() -> None:
    """What is acknowledged is on the disk: an end that takes too long may be cut short."""

    def cut() -> None:
        logger.warning("stopping took longer than %s s and was cut short", STOP_S)
        end_now(0)

    timer = threading.Timer(STOP_S, cut)
    timer.daemon = True
    timer.start()


def end_now(status: int) -> NoReturn:
    """End the process without any clean-up. Called in any thread."""
    logs.flush()
    os._exit(status)
