"""Inline pools: how they are named, and which pool is of which subnets."""

from __future__ import annotations

import hashlib

import pytest

from ipamd.core.addresses import Network, parse_network
from ipamd.core.inline import InlinePool, Limits, inline_definition, inline_name, is_of_subnets, separate_name
from ipamd.core.model import Pool
from ipamd.core.names import check_name
from tests.core.world import definition, range_of


def nets(*texts: str) -> list[Network]:
    return [parse_network(text) for text in texts]


@pytest.mark.parametrize(
    ("space", "subnets", "name"),
    [
        ("default", ("10.0.0.0/24",), "10.0.0.0-24"),
        ("default", ("2001:db8::/64",), "2001-db8---64"),
        ("blue", ("10.0.0.0/24",), "blue-10.0.0.0-24"),
        ("default", ("10.0.0.0/30", "10.0.1.0/29"), "10.0.0.0-30+10.0.1.0-29"),
        ("default", ("10.0.1.0/29", "10.0.0.0/30"), "10.0.1.0-29+10.0.0.0-30"),
        ("default", ("0.0.0.0/0",), "0.0.0.0-0"),
        ("default", ("::/96", "::1:0:0/96"), "0---96+0--1-0-0-96"),
    ],
)
def test_names(space: str, subnets: tuple[str, ...], name: str) -> None:
    assert inline_name(space, nets(*subnets)) == name
    assert check_name(name, "name") == name


def test_a_long_name_is_cut_and_keeps_its_digest() -> None:
    subnets = nets(*(f"10.0.{number}.0/24" for number in range(11)))
    whole = "+".join(f"10.0.{number}.0-24" for number in range(11))
    assert inline_name("default", subnets[:10]) == whole[: len(whole) - len("+10.0.10.0-24")]
    assert len(whole) > 128
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    assert inline_name("default", subnets) == f"{whole[:111]}-{digest}"
    assert len(inline_name("default", subnets)) == 128


def test_a_separate_pool_has_its_own_name_and_a_long_one_is_cut() -> None:
    assert separate_name("10.0.0.0-24") == "only-10.0.0.0-24"
    name = inline_name("b" * 128, nets("10.0.0.0/24"))
    assert (
        separate_name(name) == f"{('only-' + name)[:111]}-{hashlib.sha256(b'only-' + name.encode()).hexdigest()[:16]}"
    )
    assert len(separate_name(name)) == 128


def test_the_subnets_of_an_inline_pool_count_once() -> None:
    first, second = nets("10.0.0.0/24", "10.0.1.0/24")
    inline = InlinePool("default", (Limits(first, 1, 2), Limits(second, 1, 2), Limits(first, 3, 4)))
    assert inline.subnets == (first, second)
    assert inline.family == 4


def test_a_made_definition_is_of_its_whole_subnets() -> None:
    subnets = nets("10.0.0.0/24", "10.0.1.0/31")
    made = inline_definition("n", "blue", subnets)
    assert (made.name, made.space, made.inline) == ("n", "blue", True)
    assert [(one.first & 255, one.last & 255) for one in made.sets[0]] == [(1, 254), (0, 1)]
    assert is_of_subnets(Pool(1, made, 0), subnets)
    assert is_of_subnets(Pool(1, made, 0), subnets[::-1])


@pytest.mark.parametrize("sets", [("10.0.0.0/25",), ("10.0.0.0/24", "10.0.1.0/24"), (("10.0.0.0/24", "10.0.1.0/24"),)])
def test_another_pool_is_not_of_these_subnets(sets: tuple[str | tuple[str, ...], ...]) -> None:
    ranges = tuple(tuple(map(range_of, one)) if isinstance(one, tuple) else one for one in sets)
    assert not is_of_subnets(Pool(1, definition("p", *ranges), 0), nets("10.0.0.0/24"))
