"""Owns what a restore holds back: which addresses, and from whom.

An address is withheld if an unconfirmed pool of its space would give it. Nothing is kept for each of them: a /8 and an
empty /64 cost the same. A pod that the backup knows gets its address back once nobody else can be using it: its node
saw its container alive since, or every node that ever reported has reported since. That the container asks again says
nothing: a runtime that keeps ids may have deleted it after the backup, and starts it anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ipamd.core.addresses import Address
from ipamd.core.commands import Add
from ipamd.core.draft import Draft
from ipamd.core.intervals import Spans, normalise, subtract
from ipamd.core.model import AssignedAddress, Attachment, EventKind, Node, Pool
from ipamd.core.outcomes import Code, Refused
from ipamd.core.ports import View
from ipamd.core.restored import Disputed, Restored, Unconfirmed
from ipamd.core.values import replace

_FEW = 3
"""How many nodes a sentence names."""


def usable_of(pools: Iterable[Pool], family: int) -> Spans:
    """What the ranges of one family of some pools give, together."""
    ranges = (one for pool in pools for inner in pool.sets for one in inner if one.family == family)
    return normalise(span for one in ranges for span in one.usable)


def withheld_spans(view: View, space: str, family: int) -> Spans:
    """What nobody gets by chance in a space, whoever holds some of it."""
    return usable_of(view.unconfirmed_of_space(space), family) if view.restored() is not None else ()


def is_withheld(view: View, space: str, address: Address) -> bool:
    """Whether an address is not given to whom it is free for."""
    if view.restored() is None:
        return False
    pools = (pool for pool in view.unconfirmed_around(address) if pool.space == space)
    return any(one.gives(address) for pool in pools for inner in pool.sets for one in inner)


def put_pool(draft: Draft, pool: Pool) -> None:
    """Write a new pool. After a restore it may have been there since the backup was taken: it is unconfirmed too."""
    draft.put(pool)
    if draft.view.restored() is not None:
        draft.put(Unconfirmed(pool.id))


def widen(draft: Draft, old: Pool, new: Pool) -> None:
    """A pool gives more than before: after a restore it may have done so already when the backup was taken."""
    view = draft.view
    if view.restored() is None or view.is_unconfirmed(new.id):
        return
    if any(subtract(usable_of((new,), family), usable_of((old,), family)) for family in (4, 6)):
        draft.put(Unconfirmed(new.id))


def is_doubtful(view: View, attachment: Attachment) -> bool:
    """Whether only the backup says who holds the addresses of an attachment, in a pool that is not confirmed."""
    restored = view.restored()
    if restored is None or attachment.bound_index > restored.index or not view.is_unconfirmed(attachment.pool_id):
        return False
    seen = view.sighting(attachment.id)
    return seen is None or seen.generation != attachment.generation or seen.alive is not True


def awaited(view: View, restored: Restored) -> Iterator[Node]:
    """The nodes that have reported before the backup was taken and not since it was restored, by name."""
    for node in view.known_nodes():
        if node.reported_log_ms is not None and node.reported_log_ms <= restored.log_ms:
            yield node


def waits_for_nodes(draft: Draft) -> bool:
    """Whether such a node is left; asked once for a decision, which may free many."""
    restored = draft.view.restored()
    if draft.waits_for_nodes is None:
        draft.waits_for_nodes = restored is not None and next(awaited(draft.view, restored), None) is not None
    return draft.waits_for_nodes


def silent_since(view: View, restored: Restored) -> tuple[str, ...]:
    """The nodes that have not reported since the restore, those that never did among them, by name."""
    return tuple(one.name for one in view.known_nodes() if (one.reported_log_ms or 0) <= restored.log_ms)


def refuse_doubtful(
    draft: Draft, command: Add, pool: Pool, mine: Attachment, assigned: Sequence[AssignedAddress]
) -> Refused | None:
    """The refusal of an ADD whose address may be another pod's by now; None: it may have it."""
    view = draft.view
    restored = view.restored()
    if restored is None or not view.is_unconfirmed(pool.id):
        return None
    for one in assigned:
        disputed = view.disputed(one.space, one.address)
        if disputed is not None:
            return Refused(Code.CONTESTED, _in_dispute(pool, command.pod_ref, disputed), pool.name)
    if not is_doubtful(view, mine):
        return None
    nodes = [node.name for node in awaited(view, restored)]
    if not nodes:
        return None
    detail = (
        f"the address of {command.pod_ref} in pool {pool.name} comes from a restored backup, and may have been given to"
        f" another pod after it: {_names(nodes)} not reported since; once no other pod can have it:"
        f" ipamctl pool confirm {pool.name}"
    )
    return Refused(Code.CONTESTED, detail, pool.name)


def end_dispute(draft: Draft, disputed: Disputed, detail: str) -> None:
    """One of the two has let go."""
    draft.drop(disputed)
    draft.event(
        EventKind.CONFLICT_ENDED,
        space=disputed.space,
        pod_ref=disputed.pod_ref,
        ifname=disputed.ifname,
        address=disputed.address,
        node=disputed.node,
        detail=detail,
    )


def end_disputes_of(draft: Draft, node: str) -> None:
    """A node is forgotten: nobody speaks for it any more."""
    for disputed in draft.view.disputes():
        if disputed.node == node:
            end_dispute(draft, disputed, "its node was forgotten")


def move_disputes(draft: Draft, node: str, to: str) -> None:
    """A node has another name."""
    for disputed in draft.view.disputes():
        if disputed.node == node:
            draft.put(replace(disputed, node=to))


def _in_dispute(pool: Pool, pod_ref: str, disputed: Disputed) -> str:
    return (
        f"{disputed.address} of pool {pool.name} is recorded for {pod_ref}, and node {disputed.node} says that"
        f" container {disputed.container_id} of {disputed.pod_ref} uses it: delete one of the two pods, or run:"
        f" ipamctl reservation release {pool.name} {pod_ref} --force"
    )


def _names(nodes: Sequence[str]) -> str:
    if len(nodes) == 1:
        return f"node {nodes[0]} has"
    more = f" and {len(nodes) - _FEW} more" if len(nodes) > _FEW else ""
    return f"nodes {', '.join(nodes[:_FEW])}{more} have"
