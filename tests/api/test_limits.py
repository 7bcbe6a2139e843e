"""How often each kind of caller may ask, on a running server; a DEL is never too much."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from ipamd.api import limits
from ipamd.api.buckets import Rate
from ipamd.api.limits import Rates
from tests.api.test_shapes import check_problem
from tests.support.stack import Got, Stack, running

SLOW = 0.001
"""So few a second that nobody has more than the burst, however long a test takes."""

RATES = Rates(node=Rate(SLOW, 5), people=Rate(SLOW, 10), strangers=Rate(SLOW, 5), refusals=Rate(SLOW, 3))
CONF = {"cniVersion": "1.0.0", "name": "net", "ipam": {"type": "ipamd", "pool": "p"}}


@pytest.fixture
async def tight(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path, rates=RATES) as started:
        yield started


async def secret_of(stack: Stack, role: str, node: str | None = None) -> str:
    body = {"name": f"t-{role}", "role": role, **({"node": node} if node else {})}
    made = await stack.ask("POST", "/v1/tokens", body)
    assert made.status == 201
    return str(made.json["secret"])


def check_refused(got: Got) -> None:
    assert got.status == 429
    assert int(got.headers["Retry-After"]) >= 1


async def test_a_token_has_its_burst_and_no_other_pays_for_it(tight: Stack) -> None:
    one, other = await secret_of(tight, "reader"), await secret_of(tight, "operator")
    answers = [await tight.ask_tcp("GET", "/v1/pools", token=one) for _ in range(11)]
    assert [got.status for got in answers] == [200] * 10 + [429]
    check_problem(answers[-1], "too_many_requests")
    check_refused(answers[-1])
    assert (await tight.ask_tcp("GET", "/v1/pools", token=other)).status == 200
    assert (await tight.ask("GET", "/v1/pools")).status == 200
    assert tight.services.refusals.by_code["too_many_requests"] == 1


async def test_a_node_is_refused_by_a_cni_error_and_its_dels_are_done(tight: Stack) -> None:
    await tight.pool()
    token, env = await secret_of(tight, "node", "n7"), {"Ipamd_Node": "n7"}
    for at in range(5):
        got = await tight.cni("add", CONF, tcp=True, token=token, **env, CNI_ContainerID=f"c{at}")
        assert got.status == 200, got.raw
    refused = await tight.cni("add", CONF, tcp=True, token=token, **env, CNI_ContainerID="c9")
    check_refused(refused)
    assert refused.headers["Content-Type"] == "application/cni+json"
    assert refused.json["code"] == 11
    assert refused.headers["X-Request-Id"] in refused.json["msg"]
    for at in range(20):
        got = await tight.cni("del", CONF, tcp=True, token=token, **env, CNI_ContainerID=f"c{at}")
        assert got.status == 200, got.raw
    assert (await tight.ask("GET", "/v1/pools/p/usage")).json["ipv4"]["bound"] == 0


async def test_a_release_is_never_too_much(tight: Stack) -> None:
    await tight.pool()
    token = await secret_of(tight, "operator")
    while (await tight.ask_tcp("GET", "/v1/pools", token=token)).status != 429:
        pass
    for _ in range(5):
        got = await tight.ask_tcp("DELETE", "/v1/reservations/p/t%2Fnobody", token=token)
        check_problem(got, "reservation_not_found")


async def test_guessing_tokens_is_limited_by_address_and_those_who_have_one_do_not_pay(tight: Stack) -> None:
    token = await secret_of(tight, "reader")
    answers = [await tight.ask_tcp("GET", "/v1/pools", token=f"guess{at}") for at in range(7)]
    assert [got.status for got in answers] == [401] * 5 + [429] * 2
    check_problem(answers[-1], "too_many_requests")
    check_refused(await tight.ask_tcp("GET", "/livez", token=None))
    assert (await tight.ask_tcp("GET", "/v1/pools", token=token)).status == 200


@pytest.mark.parametrize("path", ["/v1/nothing", "/ui/", "/internal/v1/member", "/cni/v1/nothing"])
async def test_what_asks_for_no_token_is_counted_too(tight: Stack, path: str) -> None:
    token = await secret_of(tight, "reader")
    answers = [await tight.ask_tcp("GET", path, token="guess") for _ in range(7)]
    assert len({got.status for got in answers[:5]} - {429}) == 1
    for got in answers[5:]:
        check_problem(got, "too_many_requests")
        check_refused(got)
    assert (await tight.ask_tcp("GET", "/v1/nothing", token=token)).status == 404
    check_refused(await tight.ask_tcp("GET", "/v1/pools", token="guess"))


async def test_who_goes_on_after_many_refusals_gets_the_next_late(
    tight: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long they are late is counted and not measured, and that two wait beside each other is seen by their meeting."""
    token, late_s, both = await secret_of(tight, "reader"), list[float](), asyncio.Barrier(2)

    async def sleep(delay_s: float) -> None:
        late_s.append(delay_s)
        async with asyncio.timeout(60):
            await both.wait()

    monkeypatch.setattr(limits, "asyncio", SimpleNamespace(sleep=sleep))
    while (await tight.ask_tcp("GET", "/v1/pools", token=token)).status != 429:
        pass
    for _ in range(2):
        check_refused(await tight.ask_tcp("GET", "/v1/pools", token=token))
    assert late_s == []
    for got in await asyncio.gather(*(tight.ask_tcp("GET", "/v1/pools", token=token) for _ in range(2))):
        check_refused(got)
    assert late_s == [limits.LATE_S] * 2


async def test_a_refusal_comes_before_the_body(tight: Stack) -> None:
    token = await secret_of(tight, "operator")
    while (await tight.ask_tcp("GET", "/v1/pools", token=token)).status != 429:
        pass
    reader, writer = await asyncio.open_connection("127.0.0.1", tight.port)
    head = f"POST /v1/pools HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 9999\r\n\r\n"
    writer.write(head.encode())
    assert (await asyncio.wait_for(reader.readline(), 60)).startswith(b"HTTP/1.1 429 ")
    writer.close()


async def test_those_who_do_not_get_in_do_not_fill_the_memory_of_calls(stack: Stack) -> None:
    await stack.pool()
    assert (await stack.cni("add", CONF)).status == 200
    for _ in range(60):
        assert (await stack.cni("add", CONF, tcp=True, token="wrong")).status == 403
    calls = (await stack.ask("GET", "/v1/calls")).json["items"]
    assert 20 <= [call["code"] for call in calls].count(112) < 50
    assert [call["code"] for call in calls].count(0) == 1
