"""Owns the way of a write: a command gets its op id, goes into the log, and its outcome comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ipamd.core.commands import Command, encode_command
from ipamd.core.entries import MAX_ITEM_BYTES, OP_BYTES, Item
from ipamd.core.imports import known_ifname
from ipamd.core.outcomes import Outcome, Refused
from ipamd.core.ports import Answer, Log, Unavailable
from ipamd.errors import ApiError
from ipamd.service.ports import Clock, Random
from ipamd.service.request import At, Request

O = TypeVar("O", bound=Outcome)  # noqa: E741 - the outcome

_TIME_BYTES = 6


class Proposer:
    """Puts commands into the log."""

    def __init__(self, log: Log, clock: Clock, random: Random) -> None:
        self._log, self._clock, self._random = log, clock, random

    async def propose(self, command: Command, request: Request) -> Answer:
        """The outcome of a command. Raises ApiError for one that the log has no room for, Unavailable.

        Op ids begin with the time so that the store's index of them grows at its end; the rest is random. A request
        with an idempotency key has its op id from it, and is answered as it was the first time.
        """
        left_s = self._left_s(request)
        item = self._item(encode_command(command), request)
        if item.size_bytes > MAX_ITEM_BYTES:
            detail = f"what is asked for takes {item.size_bytes} bytes in the log; {MAX_ITEM_BYTES} is the most"
            raise ApiError("too_large", detail)
        return await self._log.propose(item, left_s)

    async def carry_out(self, command: Command, request: Request, expected: type[O]) -> At[O]:
        """The outcome of a command that must succeed. Raises ApiError where it is refused, Unavailable."""
        answer = await self.propose(command, request)
        return At(answer.index, settled(answer.outcome, expected))

    def _item(self, data: bytes, request: Request) -> Item:
        if request.key is None:
            return Item(self._new_op(), data)
        op, fingerprint, keep_ms = request.key
        return Item(op, data, fingerprint, keep_ms)

    def _left_s(self, request: Request) -> float:
        left_s = request.deadline_s - self._clock.monotonic_s()
        if left_s <= 0:
            raise Unavailable("the time for this request ran out before it could be proposed", "none")
        return left_s

    def _new_op(self) -> bytes:
        return self._clock.wall_ms().to_bytes(_TIME_BYTES, "big") + self._random(OP_BYTES - _TIME_BYTES)


def settled(outcome: Outcome, expected: type[O]) -> O:
    """An outcome of the expected kind. A refusal is raised as ApiError."""
    if isinstance(outcome, Refused):
        raise refusal(outcome)
    if not isinstance(outcome, expected):
        raise TypeError(f"the log answered {type(outcome).__name__} where {expected.__name__} was due")
    return outcome


def refusal(refused: Refused, detail: str | None = None, ranges: Sequence[str] = ()) -> ApiError:
    """A refusal as the error that ends the request. `ranges`: a clause about each range that was asked."""
    extra: dict[str, object] = {} if refused.pool is None else {"pool": refused.pool}
    if ranges:
        extra["ranges"] = list(ranges)
    if refused.stranded:
        extra["stranded"] = [
            {"pod_ref": one.pod_ref, "ifname": known_ifname(one.ifname), "address": str(one.address)}
            for one in refused.stranded
        ]
    return ApiError(refused.code.value, detail or refused.detail, **extra)
