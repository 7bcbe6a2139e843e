"""Owns what becomes of addresses that a caller insists on: each belongs to one set of the request, or is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ipamd.core.addresses import Address
from ipamd.core.allocate import Choice, Wish, number_of
from ipamd.core.asked import Asked
from ipamd.core.intervals import contains, normalise
from ipamd.core.model import AssignedAddress, Cooling, Range
from ipamd.core.outcomes import Code, Refused
from ipamd.core.ports import View
from ipamd.core.withheld import is_withheld

Place = tuple[int, int]
"""A set of a request: (which pool, which position in it), both from 0."""


def place_requested(
    asks: Sequence[Asked],
    held: Sequence[Mapping[int, AssignedAddress]],
    wanted: Sequence[Address],
) -> dict[Place, Address] | Refused:
    """Give each wanted address its set. `held` are, for each pool, the pod's own addresses by position."""
    placed: dict[Place, Address] = {}
    choices: dict[Address, list[Place]] = {}
    for address in dict.fromkeys(wanted):
        giving = _places(asks, held, address)
        if not giving:
            return Refused(Code.ADDRESS_NOT_ALLOWED, _why_not(asks, address), asks[0].pool.name)
        pool, own = asks[giving[0][0]].pool, held[giving[0][0]].get(giving[0][1])
        choices[address] = [place for place in giving if _is_open(held, place, address)]
        if not choices[address] and own is not None:
            detail = f"pool {pool.name} does not give {address}: the pod already holds {own.address} there"
            return Refused(Code.ADDRESS_NOT_ALLOWED, detail, pool.name)
        if not _seat(address, choices, placed, set()):
            detail = f"pool {pool.name} gives one address for {address} and {placed[choices[address][0]]}, not both"
            return Refused(Code.ADDRESS_NOT_ALLOWED, detail, pool.name)
    return placed


def check_requested(view: View, wish: Wish, address: Address) -> Choice | Refused:
    """Whether an address that lies in the set of a wish can be had now."""
    pool = wish.pool
    if address in wish.chosen:
        return Refused(Code.ADDRESS_NOT_ALLOWED, f"{address} is asked for twice", pool.name)
    holder = view.holder(pool.space, address)
    if holder is not None:
        return Refused(
            Code.ADDRESS_TAKEN, f"{address} of pool {pool.name} is taken by {_holder(view, holder)}", pool.name
        )
    if view.quarantine(pool.space, address) is not None:
        return Refused(Code.ADDRESS_NOT_ALLOWED, f"{address} of pool {pool.name} is in quarantine", pool.name)
    cooling = view.cooling(pool.space, address)
    if is_withheld(view, pool.space, address) and not _was_its(cooling, wish):
        detail = (
            f"{address} of pool {pool.name} is withheld: it may have been given to another pod after the backup that"
            f" this cluster was restored from; once it is not: ipamctl pool confirm {pool.name}"
        )
        return Refused(Code.ADDRESS_TAKEN, detail, pool.name)
    if cooling is not None and cooling.hard_until_log_ms > wish.now_log_ms and not _was_its(cooling, wish):
        left_ms = cooling.hard_until_log_ms - wish.now_log_ms
        detail = f"{address} of pool {pool.name} was freed just now and is cooling for another {left_ms} ms"
        return Refused(Code.ADDRESS_TAKEN, detail, pool.name)
    return wish.choice(number_of(wish.ranges, address) or 0, address.value, cooling)


def _was_its(cooling: Cooling | None, wish: Wish) -> bool:
    """Whether an address was last held by the very attachment that asks."""
    own = (wish.pool.id, wish.pod_ref, wish.ifname)
    return cooling is not None and (cooling.pool_id, cooling.pod_ref, cooling.ifname) == own


def _places(asks: Sequence[Asked], held: Sequence[Mapping[int, AssignedAddress]], address: Address) -> list[Place]:
    """Where an address can come from: where the pod holds it, else every set that gives it."""
    own = [
        (number, position)
        for number, mine in enumerate(held)
        for position, assigned in mine.items()
        if assigned.address == address
    ]
    return own or [
        (number, position)
        for number, asked in enumerate(asks)
        for position, ranges in enumerate(asked.sets)
        if number_of(ranges, address) is not None
    ]


def _is_open(held: Sequence[Mapping[int, AssignedAddress]], place: Place, address: Address) -> bool:
    """Whether the pod has nothing else in a set."""
    own = held[place[0]].get(place[1])
    return own is None or own.address == address


def _seat(
    address: Address, choices: Mapping[Address, list[Place]], placed: dict[Place, Address], tried: set[Place]
) -> bool:
    """Give an address one of its places; who sits there moves to another one of its own, if it can."""
    for place in choices[address]:
        if place in tried:
            continue
        tried.add(place)
        if place not in placed or _seat(placed[place], choices, placed, tried):
            placed[place] = address
            return True
    return False


def _holder(view: View, holder: AssignedAddress) -> str:
    attachment = view.attachment_by_id(holder.attachment_id)
    reservation = view.reservation_by_id(attachment.reservation_id) if attachment else None
    pod = reservation.pod_ref if reservation else "another pod"
    node = f" on node {attachment.owner.node}" if attachment and attachment.owner and attachment.owner.node else ""
    return f"{pod}{node}"


def _why_not(asks: Sequence[Asked], address: Address) -> str:
    """Each range around the address with its reason; where there is none, the subnets that there are."""
    for asked in asks:
        around = [one for ranges in asked.sets for one in ranges if one.subnet.covers(address)]
        if around and address in asked.first_hosts:
            return f"pool {asked.pool.name} does not give {address}: a bridge takes it as its gateway"
        if around:
            reasons = dict.fromkeys(reason_not_given(one, address) for one in around)
            return f"pool {asked.pool.name} does not give {address}: {', '.join(reasons)}"
    pools = ", ".join(f"{asked.pool.name} ({_subnets(asked)})" for asked in asks)
    return f"{address} lies in no subnet of pool {pools}"


def _subnets(asked: Asked) -> str:
    return ", ".join(dict.fromkeys(str(one.subnet) for ranges in asked.sets for one in ranges))


def reason_not_given(one: Range, address: Address) -> str:
    """Why a range does not give an address of its subnet, as the end of a sentence."""
    if address.value == one.gateway:
        return "it is the gateway"
    if contains(normalise(one.excludes), address.value):
        return "it is excluded"
    if one.first > one.last:
        return f"the limits of the request leave nothing of {one.subnet}"
    return f"it lies outside {Address(one.family, one.first)}-{Address(one.family, one.last)}"
