"""Every rule for what a pool may be, with the sentence that a refusal gives."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamd.core.addresses import Address, address_text
from ipamd.core.definition import DefinitionError, PoolText, RangeText, RouteText, define, read_exclude, read_range
from ipamd.core.intervals import Span
from ipamd.core.model import Dns, PoolDefinition


def pool(*ranges: RangeText, **more: object) -> PoolDefinition:
    return define(PoolText("p", (tuple(ranges),), **more))  # type: ignore[arg-type]


def bounds(text: RangeText) -> tuple[str, str]:
    one = read_range(text)
    return address_text(Address(one.family, one.first)), address_text(Address(one.family, one.last))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RangeText("10.0.0.7/24"), ("10.0.0.1", "10.0.0.254")),
        (RangeText("10.0.0.0/31"), ("10.0.0.0", "10.0.0.1")),
        (RangeText("10.0.0.9/32"), ("10.0.0.9", "10.0.0.9")),
        (RangeText("10.0.0.0/24", "10.0.0.0", "10.0.0.255"), ("10.0.0.1", "10.0.0.254")),
        (RangeText("10.0.0.0/24", "10.0.0.5", "10.0.0.5"), ("10.0.0.5", "10.0.0.5")),
        (RangeText("010.000.000.000/24", "10.0.0.010"), ("10.0.0.10", "10.0.0.254")),
        (RangeText("2001:db8::/64"), ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff")),
        (RangeText("2001:db8::/64", "2001:db8::", "2001:db8::f"), ("2001:db8::1", "2001:db8::f")),
        (RangeText("2001:db8::/127"), ("2001:db8::", "2001:db8::1")),
    ],
)
def test_bounds(text: RangeText, expected: tuple[str, str]) -> None:
    assert bounds(text) == expected


def test_what_was_written_is_kept_beside_the_bounds_that_count() -> None:
    one = read_range(RangeText("10.0.0.0/24", "10.0.0.0"))
    assert (one.range_start, one.first, one.range_end) == (10 << 24, (10 << 24) + 1, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (RangeText("10.0.0.0"), ["range.subnet", "10.0.0.0"]),
        (RangeText("10.0.0.0/33"), ["range.subnet", "10.0.0.0/33"]),
        (RangeText("::ffff:10.0.0.0/120"), ["range.subnet", "mapped"]),
        (RangeText("::/64"), ["range", "mapped", "::/64"]),
        (RangeText("::/64", "::fffe:ffff:ffff", "::ffff:0:0"), ["range.range_end", "mapped"]),
        (RangeText("10.0.0.0/24", "10.0.1.1"), ["range.range_start", "10.0.1.1"]),
        (RangeText("10.0.0.0/24", "2001:db8::1"), ["range.range_start", "2001:db8::1"]),
        (RangeText("10.0.0.0/24", "10.0.0.9", "10.0.0.8"), ["range.range_start", "10.0.0.9", "10.0.0.8"]),
        (RangeText("10.0.0.0/24", "10.0.0.255"), ["10.0.0.0/24"]),
        (RangeText("10.0.0.0/24", None, "10.0.0.0"), ["10.0.0.0/24"]),
        (RangeText("10.0.0.0/24", gateway="10.0.1.1"), ["range.gateway", "10.0.1.1"]),
        (RangeText("10.0.0.0/24", gateway="2001:db8::1"), ["range.gateway", "2001:db8::1"]),
        (RangeText("2001:db8::/64", gateway="10.0.0.1"), ["range.gateway", "10.0.0.1"]),
        (RangeText("10.0.0.0/24", exclude=("10.0.0.1", "10.0.0.9-10.0.0.2")), ["range.exclude[1]", "10.0.0.9"]),
        (RangeText("10.0.0.0/24", exclude=("",)), ["range.exclude[0]"]),
        (RangeText("10.0.0.0/24", exclude=("2001:db8::1",)), ["range.exclude[0]", "IPv6"]),
    ],
)
def test_a_range_is_refused_by_field_and_value(text: RangeText, words: list[str]) -> None:
    with pytest.raises(DefinitionError) as refused:
        read_range(text)
    assert all(word in str(refused.value) for word in words), refused.value


def test_excludes_have_three_forms_and_may_lie_outside() -> None:
    base = 10 << 24
    assert read_exclude("10.0.0.5", 4, "x") == Span(base + 5, base + 5)
    assert read_exclude("10.0.0.4/30", 4, "x") == Span(base + 4, base + 7)
    assert read_exclude("10.0.0.5 - 10.0.0.9", 4, "x") == Span(base + 5, base + 9)
    one = read_range(RangeText("10.0.0.0/29", exclude=("192.0.2.1", "10.0.0.2-10.0.0.4", "10.0.0.3")))
    assert one.usable == (Span(base + 1, base + 1), Span(base + 5, base + 6))


def test_a_link_local_gateway_is_taken_for_ipv6() -> None:
    assert read_range(RangeText("2001:db8::/64", gateway="fe80::1")).gateway == (0xFE80 << 112) + 1


def test_the_gateway_is_not_handed_out() -> None:
    one = read_range(RangeText("10.0.0.0/30", gateway="10.0.0.1"))
    assert one.usable == (Span((10 << 24) + 2, (10 << 24) + 2),)


@pytest.mark.parametrize("alternatives", [True, False])
def test_the_gateway_of_one_range_is_not_handed_out_of_another(*, alternatives: bool) -> None:
    written = (
        RangeText("10.0.0.0/28", None, "10.0.0.2", gateway="10.0.0.4"),
        RangeText("10.0.0.0/28", "10.0.0.3", "10.0.0.5", ("10.0.0.5",)),
    )
    made = define(PoolText("p", (written,) if alternatives else tuple((one,) for one in written)))
    first, second = (one for inner in made.sets for one in inner)
    base = 10 << 24
    assert (first.excludes, first.gateway) == ((), base + 4)
    assert second.excludes == (Span(base + 5, base + 5), Span(base + 4, base + 4))
    assert second.usable == (Span(base + 3, base + 3),)


def test_a_gateway_that_no_other_range_would_give_is_no_exclude() -> None:
    made = pool(
        RangeText("10.0.0.0/28", None, "10.0.0.2", gateway="10.0.0.4"),
        RangeText("10.0.0.0/28", "10.0.0.3", exclude=("10.0.0.4/31",), gateway="10.0.0.4"),
        RangeText("10.0.1.0/28", gateway="10.0.1.1"),
    )
    assert [one.excludes for one in made.sets[0]] == [(), (Span((10 << 24) + 4, (10 << 24) + 5),), ()]


@pytest.mark.parametrize(
    "ranges",
    [
        ((RangeText("10.0.0.0/24"), RangeText("10.0.0.128/25")),),
        ((RangeText("10.0.0.0/24"),), (RangeText("10.0.0.0/24"),)),
        ((RangeText("10.0.0.0/24", None, "10.0.0.20"), RangeText("10.0.0.0/24", "10.0.0.20")),),
        ((RangeText("10.0.0.0/8"),), (RangeText("10.9.0.0/24"),), (RangeText("10.8.0.0/24"),)),
        ((RangeText("10.0.0.0/24"), RangeText("2001:db8::/64")),),
        ((),),
        (),
    ],
)
def test_overlaps_mixed_families_and_empty_sets_are_refused(ranges: tuple[tuple[RangeText, ...], ...]) -> None:
    with pytest.raises(DefinitionError, match="ranges"):
        define(PoolText("p", ranges))


def test_two_parts_of_one_subnet_do_not_overlap() -> None:
    made = pool(RangeText("10.0.0.0/24", None, "10.0.0.9"), RangeText("10.0.0.0/24", "10.0.0.10"))
    assert [one.last - one.first + 1 for one in made.sets[0]] == [9, 245]


def test_routes_are_masked_and_come_once() -> None:
    made = pool(RangeText("10.0.0.0/24"), routes=(RouteText("10.1.2.3/8"), RouteText("0.0.0.0/0", "10.0.0.1")))
    assert [str(route.dst) for route in made.routes] == ["10.0.0.0/8", "0.0.0.0/0"]
    assert str(made.routes[1].gw) == "10.0.0.1"


@pytest.mark.parametrize(
    "routes",
    [
        (RouteText("10.0.0.0/40"),),
        (RouteText("10.0.0.0/8"), RouteText("10.9.9.9/8")),
        (RouteText("::/0"),),
        (RouteText("0.0.0.0/0", "fe80::1"),),
        (RouteText("0.0.0.0/0", "here"),),
    ],
)
def test_bad_routes_are_refused(routes: tuple[RouteText, ...]) -> None:
    with pytest.raises(DefinitionError, match="routes"):
        pool(RangeText("10.0.0.0/24"), routes=routes)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("strategy", "best"),
        ("cooldown_s", -1),
        ("cooldown_s", 2**70),
        ("cooldown_min_s", -1),
        ("hold_s", -2),
        ("reclaim", "after:"),
        ("reclaim", "soon"),
        ("reclaim", "after:59"),
        ("reclaim", "after:0"),
        ("space", ""),
        ("space", "a b"),
        ("labels", (("", "x"),)),
        ("labels", (("k", "a\nb"),)),
        ("dns", Dns(nameservers=("resolver",))),
        ("dns", Dns(search=("",))),
    ],
)
def test_other_fields_are_checked(field: str, value: object) -> None:
    with pytest.raises(DefinitionError, match=field):
        pool(RangeText("10.0.0.0/24"), **{field: value})


def test_names_are_checked() -> None:
    with pytest.raises(DefinitionError, match="name"):
        define(PoolText("a/b", ((RangeText("10.0.0.0/24"),),)))


def test_the_least_cooldown_is_not_longer_than_the_cooldown() -> None:
    with pytest.raises(DefinitionError, match="cooldown_min_s"):
        pool(RangeText("10.0.0.0/24"), cooldown_s=5, cooldown_min_s=6)
    assert pool(RangeText("10.0.0.0/24"), cooldown_s=5, cooldown_min_s=5).cooldown_min_s == 5


def test_the_refusal_of_a_duration_says_that_it_may_be_for_ever() -> None:
    with pytest.raises(DefinitionError, match="hold_s -2 must be between 0 and 316224000, or -1: for ever"):
        pool(RangeText("10.0.0.0/24"), hold_s=-2)


def test_for_ever_and_after_are_values() -> None:
    made = pool(RangeText("10.0.0.0/24"), hold_s=-1, reclaim="after:0300")
    assert (made.hold_s, made.reclaim) == (-1, "after:300")


@given(st.lists(st.text(max_size=20), max_size=4), st.text(max_size=20), st.text(max_size=20))
def test_any_text_makes_a_definition_or_one_sentence(exclude: list[str], subnet: str, gateway: str) -> None:
    for text in (subnet, "10.0.0.0/24", "2001:db8::/64"):
        with suppress(DefinitionError):
            made = pool(RangeText(text, exclude=tuple(exclude), gateway=gateway))
            assert made.sets[0][0].first <= made.sets[0][0].last
