"""Owns the Raft thread: journal, state machine and engine live in it, everybody else talks to it from outside.

The thread is event-driven: it goes round on each proposal and every 20 ms. While it syncs, what comes in gathers and
becomes the next entry.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path

from ipamd.consensus.clock import Chance, Clock
from ipamd.consensus.failures import JournalFailed, JournalFull
from ipamd.consensus.fetching import NAME as SNAPSHOT_NAME
from ipamd.consensus.fetching import Fetcher
from ipamd.consensus.figures import Figures
from ipamd.consensus.files import Files
from ipamd.consensus.intake import Waiter, check_size
from ipamd.consensus.limits import Limits
from ipamd.consensus.peers import ALONE, Beginning, NoWire, SnapshotSource, Wire
from ipamd.consensus.replica import Replica
from ipamd.core.entries import Item
from ipamd.core.figures import PeerFigures
from ipamd.core.levels import NewerEntry
from ipamd.core.model import Member
from ipamd.core.ports import Answer, LogStatus, StateMachine, Unavailable

logger = logging.getLogger(__name__)

_POLL_S = 0.005
"""How often a start or a stop looks whether it is through."""

_LAST_TURNS = 5
"""Turns of the loop in which closed connections end: TLS takes some."""


class RaftNode:
    """The replicated log as the use cases see it (core.ports.Log). Once started it owns the state machine."""

    def __init__(
        self,
        *,
        name: str,
        directory: Path,
        machine: StateMachine,
        files: Files,
        clock: Clock,
        chance: Chance,
        fatal: Callable[[str], None],
        limits: Limits | None = None,
        retryable: tuple[type[Exception], ...] = (),
        me: Member | None = None,
        beginning: Beginning = ALONE,
        wire: Wire | None = None,
        source: SnapshotSource | None = None,
        removed: Callable[[str], None] | None = None,
    ) -> None:
        """Open the journal; nothing runs before `start`.

        `me` is how this member describes itself to others; `beginning` counts while its state has no cluster. `fatal`
        is called with one sentence, in the Raft thread, when the process must stop, `removed` when this member is no
        member any more. `retryable` are what the state machine raises when nothing is wrong but a full disk. Raises
        StartRefused, JournalFailed.
        """
        self._limits = limits or Limits()
        self._wire, self._clock = wire or NoWire(), clock
        self._replica = Replica(
            name=name,
            directory=directory,
            machine=machine,
            files=files,
            clock=clock,
            chance=chance,
            limits=self._limits,
            retryable=retryable,
            me=me,
            beginning=beginning,
            wire=self._wire,
        )
        self._fatal = fatal
        self._removed = removed or fatal
        self._fetcher = Fetcher(source, directory / SNAPSHOT_NAME, clock, self._limits.fetch_pause_s)
        self._leaving = False
        self._watchers: list[Callable[[], None]] = []
        self._told = 0
        """What was applied when the watchers were told last."""

        self._thread = threading.Thread(target=self._run, name="raft", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = False
        """A round is queued."""

        self._timer: asyncio.TimerHandle | None = None
        self._dead = False

    @property
    def trouble(self) -> str | None:
        """Why nothing can be proposed here now, as one sentence; None: this member is ready."""
        return self._replica.trouble

    @property
    def ready(self) -> bool:
        """Whether this member can serve: it leads, or has what its leader has."""
        return self._replica.level

    @property
    def members(self) -> tuple[Member, ...]:
        """The members in force; empty while the first ones of a new cluster are gathered."""
        return self._replica.members

    @property
    def unready(self) -> str | None:
        """Why this member cannot serve, as one sentence; None: it can."""
        return None if self.ready else self._replica.trouble or "this member is behind its leader"

    def match_index(self, name: str) -> int | None:
        """Up to where a member has the leader's journal, as far as it said; None: this one does not lead."""
        return self._replica.match_index(name)

    def judge_wall(self, *, is_right: bool) -> None:
        """Whether a majority of the members has the same wall clock as this one."""
        self._replica.log_clock.judge_wall(is_right=is_right)

    @property
    def figures(self) -> Figures:
        """Counters for metrics."""
        return self._replica.figures

    def peer_figures(self) -> list[PeerFigures]:
        """How this leader sees the other members; nothing where it does not lead."""
        return self._replica.peer_figures()

    @property
    def in_flight(self) -> int:
        """Proposals and readers that wait or are under way."""
        return self._replica.intake.in_flight

    async def start(self) -> None:
        """Start the thread. Snapshots are fetched in the loop that runs now."""
        self._fetcher.run_in(asyncio.get_running_loop(), self._wake)
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    async def wait_ready(self, timeout_s: float) -> None:
        """Return once this member is ready. Raises Unavailable."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self.ready:  # noqa: ASYNC110 - a thread without a loop of ours makes it ready
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise Unavailable(self.unready or "this member became ready too late", "none") from None

    async def transfer(self, name: str | None, timeout_s: float) -> None:
        """Have another member lead: this one, or the most advanced. Raises Unavailable: it did not come to that."""
        if not self.status().is_leader or self._loop is None:
            raise Unavailable(self.trouble or "this member does not lead", "none")
        self._loop.call_soon_threadsafe(self._hand_over, name)
        try:
            async with asyncio.timeout(timeout_s):
                while self.status().leader in (self._replica.name, None):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            who = name or "no other member"
            raise Unavailable(f"{who} did not take over in time", "none") from None

    async def stop(self) -> None:
        """Take in nothing more, finish what is under way, hand over, sync, close. The state machine is closed too."""
        self._replica.intake.close("this member is stopping")
        if self._thread.ident is None:
            self._replica.close()
            return
        await self._until(lambda: not self.in_flight, self._limits.stop_s)
        if self._loop is not None and self.status().is_leader and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the thread has just ended
                self._loop.call_soon_threadsafe(self._hand_over, None)
            await self._until(lambda: not self._replica.hands_over, self._limits.hand_over_s)
        self._stop_loop()
        while self._thread.is_alive():  # noqa: ASYNC110 - as above
            await asyncio.sleep(_POLL_S)

    async def _until(self, done: Callable[[], bool], timeout_s: float) -> None:
        tries = int(timeout_s / _POLL_S)
        while not done() and tries > 0 and self._thread.is_alive():
            tries -= 1
            await asyncio.sleep(_POLL_S)

    async def propose(self, item: Item, timeout_s: float) -> Answer:
        """Put a command into the log and wait for its outcome. Raises Unavailable, ValueError for one too large."""
        check_size(item)
        answer = await self._wait(item, timeout_s)
        if not isinstance(answer, Answer):
            raise TypeError("a proposal was answered as a reader is")
        return answer

    async def barrier(self, timeout_s: float) -> int:
        """Wait until this member has applied all that was acknowledged before the call; its index. Raises Unavailable.

        The next entry serves for all who wait, with or without commands in it: whoever applied it has led until then.
        """
        index = await self._wait(None, timeout_s)
        if isinstance(index, Answer):
            raise TypeError("a reader was answered as a proposal is")
        return index

    def status(self) -> LogStatus:
        """What this member knows, without waiting."""
        return self._replica.status

    def watch(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, in the Raft thread, after each round that applied something."""
        self._watchers.append(wake)

    async def _wait(self, item: Item | None, timeout_s: float) -> Answer | int:
        if (trouble := self.trouble) is not None:
            raise Unavailable(trouble, "none")
        loop = asyncio.get_running_loop()
        waiter = Waiter(item, loop, loop.create_future(), since_s=self._clock.monotonic_s())
        self._replica.intake.put(waiter)
        self._wake()
        timer = loop.call_later(timeout_s, self._time_out, waiter)
        try:
            settled = await waiter.future
        except asyncio.CancelledError:
            self._replica.intake.withdraw(waiter)
            raise
        else:
            if item is not None:
                self.figures.answer_times.note(self._clock.monotonic_s() - waiter.told_s)
            return settled
        finally:
            timer.cancel()

    def _time_out(self, waiter: Waiter) -> None:
        withdrawn = self._replica.intake.withdraw(waiter)
        sure = withdrawn or waiter.item is None
        waiter.settle(Unavailable("the log did not answer in time", "none" if sure else "unknown"))

    def _wake(self) -> None:
        """Have the thread go round soon; called from any thread."""
        if not self._woken and self._loop is not None:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the thread has just ended, and told everybody who waited
                self._loop.call_soon_threadsafe(self._go_round)

    def _stop_loop(self) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._loop.stop)

    # In the Raft thread.

    def _run(self) -> None:
        loop = self._loop
        if loop is None:
            raise RuntimeError("the Raft thread runs before start")
        loop.call_soon(self._open)
        loop.run_forever()
        try:
            if not self._dead:
                self._finish()
            self._end_tasks(loop)
        finally:
            loop.close()

    def _end_tasks(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the wire end. Somebody may still be stopping the loop: that ends nothing half-way."""
        ending = loop.create_task(_end_others())
        ending.add_done_callback(lambda _: loop.stop())
        while not ending.done():
            loop.run_forever()

    def _open(self) -> None:
        self._wire.open(self._wake_here, self._die)
        self._go_round()

    def _wake_here(self) -> None:
        if not self._woken and self._loop is not None:
            self._woken = True
            self._loop.call_soon(self._go_round)

    def _hand_over(self, name: str | None) -> None:
        self._replica.hand_over(name)
        self._wake_here()

    def _go_round(self) -> None:
        self._woken = False
        if self._dead or self._leaving:
            return
        if self._timer is not None:
            self._timer.cancel()
        try:
            more = self._replica.step()
            self._mind_snapshot()
            self._tell_watchers()
        except Exception as error:  # noqa: BLE001 - the thread's boundary: what failed is never tried again
            self._die(error)
            return
        if self._replica.removed is not None:
            self._leave(self._replica.removed)
            return
        if more:
            self._wake_here()
        if not self._woken and self._loop is not None:
            self._timer = self._loop.call_later(self._limits.tick_s, self._go_round)

    def _tell_watchers(self) -> None:
        applied = self._replica.status.applied
        if applied != self._told:
            self._told = applied
            for wake in self._watchers:
                wake()

    def _mind_snapshot(self) -> None:
        """Have a snapshot fetched if one is needed, and install it once it is there."""
        path = self._fetcher.take()
        if path is not None:
            self._replica.install(path)
            path.unlink(missing_ok=True)
        leader = self._replica.member(self._replica.wanted_snapshot)
        if leader is not None:
            self._fetcher.ask(leader)

    def _leave(self, sentence: str) -> None:
        """It is no member any more. What it still has to say goes out first."""
        self._leaving = True
        self._replica.abandon(sentence)
        if self._loop is not None:
            self._loop.call_later(self._limits.leave_s, self._left, sentence)

    def _left(self, sentence: str) -> None:
        self._stop_loop()
        self._removed(sentence)

    def _finish(self) -> None:
        self._dead = True  # the loop runs once more, for the wire's end: nobody may use what is closed now
        try:
            self._replica.fail_all("this member has stopped")
            self._replica.close()
        except Exception as error:  # noqa: BLE001 - as above
            self._die(error)

    def _die(self, error: Exception) -> None:
        """Tell everybody who waits, then whoever can end the process."""
        sentence = str(error)
        if not isinstance(error, JournalFailed | JournalFull | NewerEntry):
            sentence = f"the log cannot go on: {type(error).__name__}: {error}"
            logger.error("unexpected in the Raft thread", exc_info=error)
        self._dead = True
        self._replica.abandon(sentence)
        self._stop_loop()
        self._fatal(sentence)


async def _end_others() -> None:
    """Let what was cancelled or closed end."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for _ in range(_LAST_TURNS):
        await asyncio.sleep(0)
