"""Owns the table of metrics: names, kinds, labels, and what each one says. Nothing else is exposed."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """The kinds of Prometheus that are used."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Section(StrEnum):
    """The headings of the reference page."""

    POOLS = "Pools and nodes"
    CALLS = "Calls and requests"
    LOG = "The log"
    MEMBER = "The member"
    AGENT = "The agent"


class Metric(NamedTuple):
    """A row. `on_agent`, `on_server`: who exposes it. `about` is the help text, and stands on the reference page."""

    section: Section
    name: str
    kind: Kind
    about: str
    labels: tuple[str, ...] = ()
    on_server: bool = True
    on_agent: bool = False


_COUNTER, _GAUGE, _HISTOGRAM = Kind
_POOL = ("pool", "space", "family")

_POOLS: Final = (
    Metric(
        Section.POOLS,
        "ipamd_pool_usable_addresses",
        _GAUGE,
        "Addresses that a pool's ranges give, without gateways and excludes: total in its usage.",
        _POOL,
    ),
    Metric(
        Section.POOLS,
        "ipamd_pool_addresses",
        _GAUGE,
        "How the usable addresses of a pool are spent. The states bound, held, cooling, quarantined, withheld, "
        "elsewhere and free sum to ipamd_pool_usable_addresses.",
        (*_POOL, "state"),
    ),
    Metric(
        Section.POOLS,
        "ipamd_pool_doubtful_addresses",
        _GAUGE,
        "How many of a pool's bound addresses are suspect (bound before their node's newest boot and not seen since) "
        "or lost (on a node that is).",
        (*_POOL, "doubt"),
    ),
    Metric(Section.POOLS, "ipamd_pools", _GAUGE, "How many pools there are, also where not all of them are counted."),
    Metric(Section.POOLS, "ipamd_nodes", _GAUGE, "Nodes by state: alive, lost, clash, unknown.", ("state",)),
    Metric(Section.POOLS, "ipamd_nodes_suspect", _GAUGE, "Nodes with addresses that are suspect."),
    Metric(
        Section.POOLS,
        "ipamd_mass_silence",
        _GAUGE,
        "1 while many nodes are silent at once and nothing is reclaimed until that is confirmed.",
    ),
    Metric(
        Section.POOLS,
        "ipamd_nodes_conflicts",
        _GAUGE,
        "Addresses that living containers use and somebody else has, by the nodes' last reports.",
    ),
    Metric(Section.POOLS, "ipamd_nodes_spooled_calls", _GAUGE, "DELs put aside on nodes, by the nodes' last reports."),
    Metric(Section.POOLS, "ipamd_unclaimed_interfaces", _GAUGE, "Interfaces of an import that no node has claimed."),
    Metric(Section.POOLS, "ipamd_events_last_index", _GAUGE, "Index of the newest event."),
    Metric(Section.POOLS, "ipamd_events_oldest_index", _GAUGE, "Index of the oldest event that is kept."),
    Metric(Section.POOLS, "ipamd_events_oldest_timestamp_seconds", _GAUGE, "Time of the oldest event that is kept."),
    Metric(
        Section.POOLS,
        "ipamd_state_read_timestamp_seconds",
        _GAUGE,
        "When the figures of this section were read from this member's own state.",
    ),
    Metric(Section.POOLS, "ipamd_state_read_seconds", _GAUGE, "How long that took; it is done the more seldom."),
)

_CALLS: Final = (
    Metric(
        Section.CALLS,
        "ipamd_cni_calls_total",
        _COUNTER,
        "CNI calls that this process answered, by verb and CNI error code; 0: done.",
        ("verb", "code"),
        on_agent=True,
    ),
    Metric(
        Section.CALLS,
        "ipamd_cni_call_duration_seconds",
        _HISTOGRAM,
        "From the head of a CNI call to its answer, in this process.",
        ("verb",),
        on_agent=True,
    ),
    Metric(
        Section.CALLS,
        "ipamd_http_requests_total",
        _COUNTER,
        "Other requests, by method, route and status.",
        ("method", "route", "status"),
        on_agent=True,
    ),
    Metric(
        Section.CALLS,
        "ipamd_requests_refused_total",
        _COUNTER,
        "CNI calls and other requests refused at the door, by error code: unauthorized (the token is missing, unknown, "
        "revoked or expired), forbidden (its role may not), too_many_requests (a limit was met).",
        ("code",),
    ),
    Metric(Section.CALLS, "ipamd_event_streams", _GAUGE, "Clients that follow the events of this member now."),
    Metric(
        Section.CALLS,
        "ipamd_spool_length",
        _GAUGE,
        "DELs that are put aside in this process's spool and wait for the cluster.",
        on_agent=True,
    ),
    Metric(
        Section.CALLS,
        "ipamd_spool_refused",
        _GAUGE,
        "DELs that no server takes, kept in the spool's folder refused for people.",
        on_agent=True,
    ),
    Metric(Section.CALLS, "ipamd_cni_spooled_total", _COUNTER, "DELs that this process has put aside.", on_agent=True),
)

_LOG: Final = (
    Metric(
        Section.LOG,
        "ipamd_log_stage_duration_seconds",
        _HISTOGRAM,
        "Where the time of a write goes on the leader. queue: until an entry takes the command; log: until a majority "
        "has the entry on its disk; apply: one transaction of the state; answer: until the caller goes on.",
        ("stage",),
    ),
    Metric(Section.LOG, "ipamd_log_entry_commands", _HISTOGRAM, "Commands in an entry that this member made."),
    Metric(Section.LOG, "ipamd_log_in_flight", _GAUGE, "Writes and reads that wait for the log or are under way."),
    Metric(Section.LOG, "ipamd_journal_sync_duration_seconds", _HISTOGRAM, "How long fdatasync of the journal took."),
    Metric(Section.LOG, "ipamd_journal_synced_bytes_total", _COUNTER, "Bytes put into the journal."),
    Metric(Section.LOG, "ipamd_journal_full_total", _COUNTER, "How often the journal found no room."),
    Metric(Section.LOG, "ipamd_raft_term", _GAUGE, "Raft's term."),
    Metric(Section.LOG, "ipamd_raft_is_leader", _GAUGE, "1 on the member that leads."),
    Metric(Section.LOG, "ipamd_raft_has_leader", _GAUGE, "1 while this member hears a leader, or is one."),
    Metric(Section.LOG, "ipamd_raft_committed_index", _GAUGE, "Index up to which this member knows the log committed."),
    Metric(Section.LOG, "ipamd_raft_applied_index", _GAUGE, "Index up to which this member's state is."),
    Metric(Section.LOG, "ipamd_raft_members", _GAUGE, "Members of the cluster, with a vote or without."),
    Metric(
        Section.LOG,
        "ipamd_raft_peer_lag_entries",
        _GAUGE,
        "On the leader: how many entries of its journal another member lacks.",
        ("member",),
    ),
    Metric(
        Section.LOG,
        "ipamd_raft_peer_silent_seconds",
        _GAUGE,
        "On the leader: how long ago another member has answered.",
        ("member",),
    ),
    Metric(Section.LOG, "ipamd_raft_elections_won_total", _COUNTER, "How often this member began to lead."),
    Metric(Section.LOG, "ipamd_raft_snapshots_installed_total", _COUNTER, "States taken over whole from a member."),
    Metric(
        Section.LOG,
        "ipamd_raft_bad_connections_total",
        _COUNTER,
        "Connections to the Raft port that were closed because no member speaks so.",
    ),
    Metric(
        Section.LOG,
        "ipamd_raft_bad_messages_total",
        _COUNTER,
        "What arrived on members' connections and was no message.",
    ),
)

_MEMBER: Final = (
    Metric(
        Section.MEMBER,
        "ipamd_build_info",
        _GAUGE,
        "1; the labels say which program this is.",
        ("program", "version", "python"),
        on_agent=True,
    ),
    Metric(
        Section.MEMBER,
        "ipamd_member_info",
        _GAUGE,
        "1; the labels say whose figures these are. cluster_id is empty before the cluster is founded.",
        ("cluster_id", "member", "node"),
    ),
    Metric(Section.MEMBER, "ipamd_ready", _GAUGE, "1 while this member can serve, as its log sees it."),
    Metric(
        Section.MEMBER,
        "ipamd_state_differs",
        _GAUGE,
        "1 while the digests of the members' states, compared each minute, are not all equal.",
    ),
    Metric(
        Section.MEMBER,
        "ipamd_writes_halted",
        _GAUGE,
        "1 while this member writes nothing because no majority of states is equal.",
    ),
    Metric(
        Section.MEMBER,
        "ipamd_certificate_expiry_timestamp_seconds",
        _GAUGE,
        "When this member's certificate ends; absent without TLS. Days left: (it - time()) / 86400.",
    ),
    Metric(
        Section.MEMBER,
        "ipamd_backup_last_timestamp_seconds",
        _GAUGE,
        "When this member made its newest scheduled backup; 0: none yet; absent without backup-dir.",
    ),
    Metric(Section.MEMBER, "ipamd_backup_size_bytes", _GAUGE, "Size of that backup; absent without backup-dir."),
    Metric(
        Section.MEMBER,
        "ipamd_backups_failed_total",
        _COUNTER,
        "Scheduled backups that this member could not make; absent without backup-dir.",
    ),
)

_AGENT: Final = (
    Metric(Section.AGENT, "ipamd_upstream_servers", _GAUGE, "Servers that the agent knows.", (), False, True),
    Metric(
        Section.AGENT,
        "ipamd_upstream_silent_seconds",
        _GAUGE,
        "How long ago a server answered; absent until one has.",
        (),
        False,
        True,
    ),
    Metric(Section.AGENT, "ipamd_upstream_index", _GAUGE, "Highest log index a server has named.", (), False, True),
)

TABLE: Final[tuple[Metric, ...]] = (*_POOLS, *_CALLS, *_LOG, *_MEMBER, *_AGENT)
BY_NAME: Final = {metric.name: metric for metric in TABLE}
