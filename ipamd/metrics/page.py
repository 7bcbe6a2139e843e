"""Owns the reference page of the metrics, made from the table: docs/reference/metrics.md."""

from __future__ import annotations

from collections.abc import Iterator

from ipamd.core.figures import COUNTS, SECONDS
from ipamd.metrics.state import FIRST_S, FRESH_S, MOST_POOLS, SPARED
from ipamd.metrics.table import TABLE, Metric, Section


def _bounds(bounds: tuple[float, ...]) -> str:
    return ", ".join(f"{bound:g}" for bound in bounds)


_HEAD = f"""# Metrics

<!-- Made from the table in ipamd/metrics by `python -m ipamd.metrics`; edit that. -->

`GET /metrics` answers in Prometheus' text format: on a server's TCP port to a token of role `reader` or above, on its
node socket, and on an agent's socket. [How to scrape and what to alert on](../howto/monitor.md).

Counters count since the process began. Buckets of durations end at {_bounds(SECONDS)} s, those of counts at
{_bounds(COUNTS)}. Beside these there are the `process_*` metrics of the Prometheus client for Python.
"""

_NOTES = {
    Section.POOLS: f"""Read from the member's own state, without a leader too: `ipamd_raft_applied_index` says how new
it is. All members expose them; take `max by (pool, family)`, or scrape one. A reading is kept for
{FRESH_S:g} s, or {SPARED} times as long as it took, so that no scrape slows down anybody else;
`ipamd_state_read_timestamp_seconds` says of when it is. A first scrape waits {FIRST_S:g} s for the first
reading; where that takes longer, all of this section is absent until it is there. The first {MOST_POOLS:,} pools
by name are counted, `ipamd_pools` counts all. Values are floats: counts beyond 2^53 are rounded; `ipamctl pool
usage` has them exactly.
""",
    Section.CALLS: "Of a server and of an agent. The codes are those of [CNI errors](errors.md#cni-error-codes).\n",
    Section.LOG: "Of a server; where it says so, on the leader alone.\n",
    Section.MEMBER: "",
    Section.AGENT: "Of an agent, beside the calls, the spool and `ipamd_build_info`.\n",
}


def page() -> str:
    """The whole page, as Markdown."""
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for section in Section:
        rows = [_row(metric) for metric in TABLE if metric.section is section]
        table = ["| metric | kind | labels | meaning |", "|---|---|---|---|", *rows]
        yield "\n".join([f"## {section}\n", *([_NOTES[section]] if _NOTES[section] else []), *table, ""])


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.about} |"
