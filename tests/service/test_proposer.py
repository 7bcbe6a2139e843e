"""How a command goes into the log: op ids, keys, deadlines, and what becomes of the outcome."""

from __future__ import annotations

import pytest

from ipamd.core.addresses import Address
from ipamd.core.commands import DropToken, Origin, decode_command
from ipamd.core.entries import KEEP_INTERNAL_MS, KEEP_KEYED_MS, MAX_ITEM_BYTES, OP_BYTES
from ipamd.core.outcomes import Code, Done, PoolStored, Refused, Stranded
from ipamd.core.ports import Unavailable
from ipamd.core.values import replace
from ipamd.errors import ApiError
from ipamd.service.proposer import Proposer, refusal, settled
from ipamd.service.request import Key, Request
from tests.support.scripted import ScriptedLog, TurnedClock, counting_bytes

COMMAND = DropToken(Origin("me", "r1"), "t1")


def request(key: Key | None = None, left_s: float = 5.0) -> Request:
    return Request("me", "r1", 1000.0 + left_s, key)


async def test_op_ids_are_new_and_sort_by_time() -> None:
    log, clock = ScriptedLog(), TurnedClock()
    proposer = Proposer(log, clock, counting_bytes())
    for _ in range(3):
        clock.epoch_ms += 1
        await proposer.propose(COMMAND, request())
    ops = [item.op for item in log.items]
    assert ops == sorted(set(ops))
    assert {len(op) for op in ops} == {OP_BYTES}
    assert {(item.fingerprint, item.keep_ms) for item in log.items} == {(b"", KEEP_INTERNAL_MS)}
    assert decode_command(log.items[0].command) == COMMAND


async def test_a_keyed_request_has_the_op_id_of_its_key() -> None:
    log = ScriptedLog()
    key = Key.of("me", "k", "POST", "/v1/pools?x=1", b"{}")
    await Proposer(log, TurnedClock(), counting_bytes()).propose(COMMAND, request(key))
    (item,) = log.items
    assert (item.op, item.fingerprint, item.keep_ms) == (key.op, key.fingerprint, KEEP_KEYED_MS)


def test_keys_tell_callers_apart_and_fingerprints_requests() -> None:
    one = Key.of("me", "k", "POST", "/v1/pools", b"{}")
    assert Key.of("me", "k", "POST", "/v1/pools", b"{}") == one
    assert Key.of("you", "k", "POST", "/v1/pools", b"{}").op != one.op
    for other in (("PUT", "/v1/pools", b"{}"), ("POST", "/v1/pools?a", b"{}"), ("POST", "/v1/pools", b"{ }")):
        again = Key.of("me", "k", *other)
        assert again.op == one.op
        assert again.fingerprint != one.fingerprint
    assert len({one.op, one.part(0).op, one.part(1).op}) == 3


async def test_what_is_left_of_the_deadline_is_the_time_out() -> None:
    log, clock = ScriptedLog(), TurnedClock()
    proposer = Proposer(log, clock, counting_bytes())
    await proposer.propose(COMMAND, request(left_s=2.5))
    assert log.timeouts_s == [2.5]
    clock.now_s += 2.5
    with pytest.raises(Unavailable) as refused:
        await proposer.propose(COMMAND, request(left_s=2.5))
    assert refused.value.outcome == "none"
    assert len(log.items) == 1


async def test_a_command_that_no_entry_can_carry_is_too_large() -> None:
    log = ScriptedLog()
    proposer = Proposer(log, TurnedClock(), counting_bytes())
    for key in (None, Key.of("me", "k", "POST", "/v1/pools", b"{}")):
        with pytest.raises(ApiError) as refused:
            await proposer.propose(replace(COMMAND, token_id="t" * MAX_ITEM_BYTES), request(key))
        assert refused.value.row.code == "too_large"
    assert log.items == []


async def test_a_refusal_becomes_an_error_with_what_it_names() -> None:
    stranded = (Stranded("t/a", "eth0", Address(4, 1)),)
    log = ScriptedLog(Refused(Code.POOL_IN_USE, "it is in use", "p", stranded=stranded))
    with pytest.raises(ApiError) as refused:
        await Proposer(log, TurnedClock(), counting_bytes()).carry_out(COMMAND, request(), Done)
    error = refused.value
    assert (error.row.code, error.detail, error.extra["pool"]) == ("pool_in_use", "it is in use", "p")
    assert error.extra["stranded"] == [{"pod_ref": "t/a", "ifname": "eth0", "address": "0.0.0.1"}]


def test_every_code_of_the_core_is_an_error_of_the_api() -> None:
    for code in Code:
        assert refusal(Refused(code, "no")).row.code == code.value


def test_an_outcome_of_another_kind_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="PoolStored"):
        settled(Done(), PoolStored)
