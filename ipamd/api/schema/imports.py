"""Owns the JSON of imports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from ipamd.api.schema.common import Given, Shown
from ipamd.core.imports import Fate, Finding, Verdict, is_named_after
from ipamd.core.outcomes import Imported
from ipamd.imports.plan import Plan
from ipamd.service.imports import Rehearsal


class ImportQuery(Given):
    """Of an import: what the body is, on which node it was found, and of which Kubernetes cluster it is."""

    format: Literal["whereabouts", "host-local"]
    dry_run: bool = False
    node: str | None = None
    cluster: str | None = None


class HostLocalBody(Given):
    """The directories of host-local: network to file name to content; and the configurations that go with them."""

    networks: dict[str, dict[str, str]]
    confs: tuple[dict[str, Any], ...] = ()


class ImportedPoolShown(Shown):
    """What an import does in one pool, in addresses. `gone`: given back since, and cooling."""

    pool: str
    space: str
    created: bool
    made: int
    kept: int
    gone: int


class ConflictShown(Shown):
    """What stands against an import; `why` goes on a sentence that begins with the address, or with the place."""

    place: str
    address: str | None
    why: str


class EntryShown(Shown):
    """One address of a dry run, and what would become of it."""

    address: str
    pool: str
    pod_ref: str | None
    ifname: str | None
    container_id: str | None
    node: str | None
    cni_network: str | None
    place: str
    fate: str
    why: str


class ImportShown(Shown, omit_defaults=True):
    """What an import did, or (dry run) would do, entry by entry. Without conflicts all of it, else nothing."""

    dry_run: bool
    pools: tuple[ImportedPoolShown, ...]
    made: int
    kept: int
    gone: int
    refused: int
    warnings: tuple[str, ...]
    entries: tuple[EntryShown, ...] | UnsetType = UNSET
    conflicts: tuple[ConflictShown, ...] | UnsetType = UNSET


def show_imported(outcome: Imported, warnings: Iterable[str]) -> ImportShown:
    """What an import did."""
    return _shown(outcome, warnings, dry_run=False)


def show_rehearsed(rehearsal: Rehearsal, plan: Plan) -> ImportShown:
    """What an import would do."""
    shown = _shown(rehearsal.outcome, plan.warnings, dry_run=True)
    names = [one.pool for one in rehearsal.outcome.pools]
    shown.entries = tuple(_entry(names[finding.pool], finding, verdict) for finding, verdict in rehearsal.verdicts)
    shown.conflicts = tuple(
        ConflictShown(place=one.place, address=str(one.address) if one.address else None, why=one.why)
        for one in rehearsal.outcome.conflicts
    )
    return shown


def _shown(outcome: Imported, warnings: Iterable[str], *, dry_run: bool) -> ImportShown:
    pools = outcome.pools
    return ImportShown(
        dry_run=dry_run,
        pools=tuple(
            ImportedPoolShown(
                pool=one.pool, space=one.space, created=one.created, made=one.made, kept=one.kept, gone=one.gone
            )
            for one in pools
        ),
        made=sum(one.made for one in pools),
        kept=sum(one.kept for one in pools),
        gone=sum(one.gone for one in pools),
        refused=len(outcome.conflicts),
        warnings=tuple(warnings),
    )


def _entry(pool: str, finding: Finding, verdict: Verdict) -> EntryShown:
    is_open = is_named_after(finding.pod_ref, finding.container_id)
    return EntryShown(
        address=str(finding.address),
        pool=pool,
        pod_ref=None if is_open else finding.pod_ref,
        ifname=finding.ifname,
        container_id=finding.container_id,
        node=finding.node,
        cni_network=finding.cni_network,
        place=finding.place,
        fate=Fate(verdict.fate).value,
        why=verdict.why,
    )
