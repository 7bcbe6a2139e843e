"""Secrets: how they look, how soon they count and end, and what is written of their use."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ipamd import system
from ipamd.core.commands import NoteUses, decode_command
from ipamd.core.model import Role, Token
from ipamd.core.tokens import USE_KEPT_MS
from ipamd.core.values import replace
from ipamd.service import Services
from ipamd.service.proposer import Proposer
from ipamd.service.request import Request
from ipamd.service.tokens import Tokens, digest_of, new_secret
from ipamd.service.tokenuse import TokenUse
from tests.support.eventually import until
from tests.support.scripted import ScriptedLog, TurnedClock, counting_bytes
from tests.support.stack import SECRET, Stack, running


def request(services: Services) -> Request:
    return Request("me", "r", services.clock.monotonic_s() + 60)


def elsewhere(stack: Stack, clock: TurnedClock) -> Tokens:
    """The tokens as another process with its own clock looks at them."""
    services = stack.services
    proposer = Proposer(services.log, services.clock, system.random_bytes)
    use = TokenUse(services.log, proposer, services.reader, clock)
    return Tokens(proposer, services.reader, services.log, clock, random=system.random_bytes, use=use)


def stored(services: Services, token_id: str) -> Token:
    found = services.reader.glance(lambda snapshot: snapshot.token(token_id)).value
    assert found is not None
    return found


def test_a_secret_has_256_bits_and_is_known_by_its_digest_only() -> None:
    secrets = {new_secret(system.random_bytes) for _ in range(50)}
    assert len(secrets) == 50
    assert {len(secret) for secret in secrets} == {len("ipamd_") + 43}
    assert digest_of("a") != digest_of("b")
    assert len(digest_of("\ud800")) == 32


async def test_a_token_made_elsewhere_works_at_once_and_ends_within_a_quarter_second(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        services, clock = stack.services, TurnedClock()
        here = elsewhere(stack, clock)
        assert here.bearer(SECRET) is not None
        made = (await services.tokens.create("ci", Role.READER, None, 60, request(services))).value
        assert made.secret is not None
        known = here.bearer(made.secret)
        assert known is not None
        assert known.role is Role.READER

        await services.tokens.revoke(made.token.id, request(services))
        assert services.tokens.bearer(made.secret) is None
        clock.now_s += 0.25
        assert here.bearer(made.secret) is None


async def test_a_token_ends_by_the_clock_of_the_log_and_not_by_this_members_own(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        services, clock = stack.services, TurnedClock()
        here = elsewhere(stack, clock)
        made = (await services.tokens.create("ci", Role.READER, None, 2, request(services))).value
        assert made.secret is not None
        clock.epoch_ms = services.clock.wall_ms() + 90_000
        assert here.bearer(made.secret) is not None
        clock.epoch_ms = 0
        secret = made.secret
        await until(lambda: services.tokens.bearer(secret) is None)  # nobody wrote: the leader let the time pass
        clock.now_s += 0.25
        assert here.bearer(secret) is None
        expired = here.expired(secret)
        assert expired is not None
        assert expired.id == made.token.id


async def test_the_first_use_is_written_at_once_and_the_next_not_within_the_hour(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        services = stack.services
        made = (await services.tokens.create("ci", Role.READER, None, None, request(services))).value
        assert stored(services, made.token.id).used_ms is None
        await stack.ask_tcp("GET", "/v1/pools", token=made.secret)
        await until(lambda: stored(services, made.token.id).used_ms is not None)
        first = stored(services, made.token.id)
        await asyncio.sleep(0.1)
        for _ in range(20):
            await stack.ask_tcp("GET", "/v1/pools", token=made.secret)
        await asyncio.sleep(0.3)
        assert stored(services, made.token.id) == first


async def test_one_use_is_told_to_the_log_and_many_at_once_together(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        log, clock = ScriptedLog(), TurnedClock()
        use = TokenUse(log, Proposer(log, clock, counting_bytes()), stack.services.reader, clock)
        tokens = [Token(f"t{number}", "x", Role.READER, bytes(32), 1) for number in range(3)]
        noted = replace(tokens[0], id="t9", used_ms=clock.wall_ms() - USE_KEPT_MS + 1)
        use.start()
        for token in (*tokens, *tokens, noted):
            use.note(token, 0)
        await until(lambda: len(log.items) == 1)
        for token in tokens:
            use.note(token, 0)
        await asyncio.sleep(0.3)
        await use.stop()
        (item,) = log.items
        command = decode_command(item.command)
        assert isinstance(command, NoteUses)
        assert command.token_ids == ("t0", "t1", "t2")


async def test_what_nobody_bears_is_looked_for_and_not_remembered(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        here = elsewhere(stack, TurnedClock())
        for number in range(50):
            assert here.bearer(f"wrong-{number}") is None
        assert here.bearer(SECRET) is not None
