"""Secrets: how they look, and how fresh the copy is that they are looked up in."""

from __future__ import annotations

from pathlib import Path

from ipamd import system
from ipamd.core.model import Role
from ipamd.service.proposer import Proposer
from ipamd.service.request import Request
from ipamd.service.tokens import Tokens, digest_of, new_secret
from tests.support.scripted import TurnedClock
from tests.support.stack import SECRET, running


def test_a_secret_has_256_bits_and_is_known_by_its_digest_only() -> None:
    secrets = {new_secret(system.random_bytes) for _ in range(50)}
    assert len(secrets) == 50
    assert {len(secret) for secret in secrets} == {len("ipamd_") + 43}
    assert digest_of("a") != digest_of("b")
    assert len(digest_of("\ud800")) == 32


async def test_a_token_made_elsewhere_works_at_once_and_ends_within_a_quarter_second(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        services, clock = stack.services, TurnedClock()
        proposer = Proposer(services.log, services.clock, system.random_bytes)
        here = Tokens(proposer, services.reader, services.log, clock, system.random_bytes)
        assert here.bearer(SECRET) is not None

        def request() -> Request:
            return Request("me", "r", services.clock.monotonic_s() + 5)

        made = (await services.tokens.create("ci", Role.READER, None, 60, request())).value
        assert made.secret is not None
        known = here.bearer(made.secret)
        assert known is not None
        assert known.role is Role.READER

        await services.tokens.revoke(made.token.id, request())
        assert services.tokens.bearer(made.secret) is None
        clock.now_s += 0.25
        assert here.bearer(made.secret) is None


async def test_a_token_ends_with_its_time(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        services, clock = stack.services, TurnedClock()
        clock.epoch_ms = services.clock.wall_ms()
        here = Tokens(
            Proposer(services.log, services.clock, system.random_bytes),
            services.reader,
            services.log,
            clock,
            system.random_bytes,
        )
        request = Request("me", "r", services.clock.monotonic_s() + 5)
        made = (await services.tokens.create("ci", Role.READER, None, 60, request)).value
        assert made.secret is not None
        assert here.bearer(made.secret) is not None
        clock.epoch_ms += 61_000
        assert here.bearer(made.secret) is None
