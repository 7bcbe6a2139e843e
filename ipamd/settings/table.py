"""Owns the table of settings: each one's name, kind, default and meaning, once.

A setting `data-dir` is `data-dir` in the TOML file, `IPAMD_DATA_DIR` in the environment, `--data-dir` on the command
line and `data_dir` in Config.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ipamd.core.definition import MAX_SECONDS
from ipamd.core.model import Settings
from ipamd.settings import kinds
from ipamd.settings.kinds import Kind


class Section(StrEnum):
    """The parts of the reference page, in their order."""

    MEMBER = "This server"
    CLUSTER = "Several servers"
    FIRST = "A new cluster's first values"
    BACKUP = "Backups"
    TIMING = "Time-outs"
    AGENT = "The agent"


@dataclass(frozen=True)
class Setting:
    """One row. `default` is text as a flag would give it; None: none, and `default_note` says what happens then."""

    name: str
    kind: Kind
    default: str | None
    about: str
    section: Section = Section.MEMBER
    default_note: str = ""

    @property
    def field(self) -> str:
        """Its name in Config."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return f"IPAMD_{self.field.upper()}"

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return f"--{self.name}"


_FIRST_KINDS = {
    "inline_pools": (kinds.FLAG, "Pools that CNI configurations describe are made on first use."),
    "cooldown_s": (
        kinds.integer("SECONDS", 0, MAX_SECONDS),
        "How long a freed address is handed out only when nothing else is free.",
    ),
    "reclaim": (
        kinds.RECLAIM,
        "Whether the addresses of a lost node are freed, and how long after it was lost (at least 60 s).",
    ),
    "node_lost_s": (
        kinds.integer("SECONDS", 0, MAX_SECONDS),
        "How long a node may be silent before it counts as lost; three heartbeats at least.",
    ),
    "evidence_grace_s": (
        kinds.integer("SECONDS", 0, MAX_SECONDS),
        "How far apart two reports of a node must be that both find a namespace gone, before its address is freed.",
    ),
    "tombstone_s": (
        kinds.integer("SECONDS", 0, MAX_SECONDS),
        "How long the mark of a DEL lives, which refuses the ADD that comes after it.",
    ),
    "events_days": (kinds.integer("DAYS", 1, 36_500), "How many days events, and so the history, are kept."),
    "events_max": (kinds.integer("COUNT", 1, 1_000_000_000), "How many events are kept at most."),
}


def _first_values() -> tuple[Setting, ...]:
    """The flags of the replicated settings: their defaults are those of the core, so that they cannot differ."""
    defaults = Settings()
    return tuple(
        Setting(name.replace("_", "-"), kind, str(getattr(defaults, name)).lower(), about, Section.FIRST)
        for name in Settings.__struct_fields__
        for kind, about in [_FIRST_KINDS[name]]
    )


DEL_POLICY = Setting(
    "del-policy",
    kinds.choice("spool", "error"),
    "spool",
    "What becomes of a DEL that the cluster cannot take within half a second: kept on the disk, a success for its"
    " caller, and delivered later; or error code 11, so that the pod is not removed until it can.",
)

EVIDENCE = (
    Setting(
        "cni-cache-dir",
        kinds.DIRECTORIES,
        "/var/lib/cni/results:/var/lib/cni/multus/results",
        "Where the container runtime's CNI library keeps a record of each attachment; may be given several times (in"
        " the environment with `:` between them). A record can save what looks gone, and takes no life away.",
    ),
    Setting(
        "heartbeat-every-s",
        kinds.integer("SECONDS", 1, 60),
        "10",
        "How often this node says that it is there.",
    ),
    Setting(
        "report-every-s",
        kinds.integer("SECONDS", 1, 3_600),
        "30",
        "How often it looks at its pods' network namespaces and reports which are there. Over 90 seconds, takeovers by"
        " other nodes are not refused any more.",
    ),
)
"""What a node tells the cluster of itself."""

LOGGING = (
    Setting("log-format", kinds.choice("json", "text"), "json", "One JSON object a line, or text for people."),
    Setting("log-level", kinds.choice("debug", "info", "warning", "error"), "info", "The least severe lines to log."),
)

TABLE: tuple[Setting, ...] = (
    Setting("config", kinds.PATH, None, "A TOML file with settings.", default_note="no file"),
    Setting("data-dir", kinds.PATH, "/var/lib/ipamd", "Where the server keeps its state; made with mode 0700."),
    Setting("listen", kinds.ENDPOINT, "127.0.0.1:7480", "Where the HTTP API listens."),
    Setting(
        "socket",
        kinds.SOCKET_PATH,
        "/run/ipamd/cni.sock",
        "The node socket for CNI calls and administrators; mode 0600.",
    ),
    Setting(
        "raft-listen",
        kinds.ENDPOINT,
        "127.0.0.1:7481",
        "Where Raft listens. It is opened only with certificates, or on loopback with `insecure`: without them a"
        " cluster of one has nobody to talk to.",
    ),
    Setting(
        "member-name",
        kinds.NAME,
        None,
        "The name of this Raft member; kept in the data directory.",
        default_note="the host's name",
    ),
    Setting(
        "node-name",
        kinds.NAME,
        None,
        "The name of this host as a node that runs pods; kept in the data directory. It must be given on a host that is"
        " called `localhost...`, and inside a container unless `member-name` is.",
        default_note="the member's name",
    ),
    Setting(
        "advertise-raft",
        kinds.ENDPOINT,
        None,
        "How other members reach this one's Raft port.",
        default_note="its own `peer`, else `raft-listen`; for every interface the host's name and that port",
    ),
    Setting(
        "advertise-url",
        kinds.URL,
        None,
        "How other members and clients reach this one's HTTP API.",
        default_note="its own `peer`, else `listen`; for every interface the host's name and that port",
    ),
    Setting(
        "cluster",
        kinds.NAME,
        None,
        "Put before the pods and nodes of this host as `NAME:`, for several Kubernetes clusters that share one ipamd.",
        default_note="nothing is put before them",
    ),
    Setting(
        "insecure",
        kinds.FLAG,
        "false",
        "Listen beyond loopback without TLS, and on loopback to peers without; tokens are then switched off, with a"
        " warning at each start.",
    ),
    Setting(
        "spool-dir",
        kinds.PATH,
        None,
        "Where DELs are kept that the cluster cannot take now. It must outlive a reboot: no tmpfs.",
        default_note="`spool` in `data-dir`",
    ),
    DEL_POLICY,
    *EVIDENCE,
    *LOGGING,
    Setting(
        "peer",
        kinds.PEERS,
        None,
        "A first member of a new cluster; given once for each of them, the same on all of them, this one among them or"
        " not. The cluster forms once all have answered that they are empty too. Later the members are in the state.",
        Section.CLUSTER,
        "a cluster of one",
    ),
    Setting(
        "join",
        kinds.URL,
        None,
        "The URL of a member of a cluster that this one joins, with an empty data directory. Later it counts no more.",
        Section.CLUSTER,
        "nothing is joined",
    ),
    Setting(
        "token-file",
        kinds.PATH,
        None,
        "A file with a token of role admin, for `join`.",
        Section.CLUSTER,
        "none; the member to join must have tokens switched off",
    ),
    Setting(
        "tls-cert",
        kinds.PATH,
        None,
        "This member's certificate, for Raft and API: `ipamctl tls issue` makes one. New files are read within"
        " ten seconds, or at SIGHUP.",
        Section.CLUSTER,
        "no TLS",
    ),
    Setting("tls-key", kinds.PATH, None, "Its private key.", Section.CLUSTER, "no TLS"),
    Setting(
        "tls-ca", kinds.PATH, None, "The authority that signs the members' certificates.", Section.CLUSTER, "no TLS"
    ),
    Setting(
        "backup-dir",
        kinds.PATH,
        None,
        "Where this member puts a backup of the cluster's state now and then, with its SHA-256 beside it, and removes"
        " the oldest. Best on another disk, on one member or on each of them, each with a directory of its own.",
        Section.BACKUP,
        "no backup is made by itself",
    ),
    Setting(
        "backup-every-s",
        kinds.integer("SECONDS", 1, MAX_SECONDS),
        "86400",
        "How often that is.",
        Section.BACKUP,
    ),
    Setting(
        "backup-keep",
        kinds.integer("COUNT", 1, 100_000),
        "7",
        "How many of them are kept.",
        Section.BACKUP,
    ),
    *_first_values(),
    Setting(
        "raft-min-timeout-ms",
        kinds.integer("MS", 50, 60_000),
        "500",
        "The shortest time without a leader after which an election starts.",
        Section.TIMING,
    ),
    Setting(
        "raft-max-timeout-ms",
        kinds.integer("MS", 75, 90_000),
        "1000",
        "The longest such time; at least one and a half times `raft-min-timeout-ms`.",
        Section.TIMING,
    ),
    Setting(
        "raft-heartbeat-ms",
        kinds.integer("MS", 10, 20_000),
        "100",
        "How often a leader is heard at least; three of them must fit into `raft-min-timeout-ms`.",
        Section.TIMING,
    ),
    Setting(
        "raft-fallback-ms",
        kinds.integer("MS", 50, 90_000),
        None,
        "After how long a leader that hears no majority stops believing in itself; at least `raft-min-timeout-ms`.",
        Section.TIMING,
        "`raft-max-timeout-ms`",
    ),
    Setting(
        "digest-every-s",
        kinds.integer("SECONDS", 1, 86_400),
        "60",
        "How often the leader has all members compare their states; one that takes long to read, more seldom.",
        Section.TIMING,
    ),
)
