"""Owns the settings as the program reads them: typed, checked, complete."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ipamd.core.model import Settings
from ipamd.settings.kinds import Endpoint, Peer


@dataclass(frozen=True)
class Config:
    """The settings of one start; names and meanings are those of the table."""

    config: Path | None
    data_dir: Path
    listen: Endpoint
    socket: Path
    raft_listen: Endpoint
    member_name: str
    node_name: str
    advertise_raft: Endpoint
    advertise_url: str
    peer: tuple[Peer, ...] | None
    join: str | None
    token_file: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_ca: Path | None
    cluster: str | None
    insecure: bool
    spool_dir: Path
    del_policy: str
    cni_cache_dir: tuple[Path, ...]
    heartbeat_every_s: int
    report_every_s: int
    log_format: str
    log_level: str
    raft_min_timeout_ms: int
    raft_max_timeout_ms: int
    raft_heartbeat_ms: int
    raft_fallback_ms: int
    digest_every_s: int
    backup_dir: Path | None
    backup_every_s: int
    backup_keep: int
    first: Settings
    """The replicated settings that a new cluster starts with."""

    @property
    def has_tls(self) -> bool:
        """Whether Raft and API are served with certificates."""
        return self.tls_cert is not None

    @property
    def meets_peers(self) -> bool:
        """Whether other members can be talked to: with certificates, or on loopback with `insecure`."""
        return self.has_tls or (self.insecure and self.raft_listen.is_loopback)

    def full_name(self, name: str) -> str:
        """A node of this host as all clusters that share the server know it: with `cluster` before it."""
        return name if self.cluster is None else f"{self.cluster}:{name}"


@dataclass(frozen=True)
class AgentConfig:
    """The settings of one start of an agent."""

    config: Path | None
    server: tuple[str, ...]
    token_file: Path | None
    enrol_file: Path | None
    tls_ca: Path | None
    socket: Path
    spool_dir: Path
    node_name: str
    cluster: str | None
    del_policy: str
    cni_cache_dir: tuple[Path, ...]
    heartbeat_every_s: int
    report_every_s: int
    log_format: str
    log_level: str

    @property
    def full_name(self) -> str:
        """The node as all clusters that share the servers know it: with `cluster` before it."""
        return self.node_name if self.cluster is None else f"{self.cluster}:{self.node_name}"
