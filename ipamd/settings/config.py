"""Owns the settings as the program reads them: typed, checked, complete."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ipamd.core.model import Settings
from ipamd.settings.kinds import Endpoint


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
    cluster: str | None
    insecure: bool
    log_format: str
    log_level: str
    raft_min_timeout_ms: int
    raft_max_timeout_ms: int
    first: Settings
    """The replicated settings that a new cluster starts with."""

    def full_name(self, name: str) -> str:
        """A node of this host as all clusters that share the server know it: with `cluster` before it."""
        return name if self.cluster is None else f"{self.cluster}:{name}"
