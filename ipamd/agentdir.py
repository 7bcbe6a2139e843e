"""Owns what an agent remembers beside its spool: the node's name, and the cluster that it found last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ipamd.datadir import DataDirError, write_durably

FILE_NAME = "agent.json"


@dataclass(frozen=True)
class Kept:
    """Whose spool it is, and where the cluster was."""

    node_name: str
    cluster_id: str | None = None
    servers: tuple[str, ...] = ()


class AgentDirectory:
    """The file in an agent's spool directory."""

    def __init__(self, path: Path) -> None:
        self._file = path / FILE_NAME

    def read(self) -> Kept | None:
        """What is kept; None: nothing yet. Raises DataDirError."""
        try:
            found = json.loads(self._file.read_text())
            cluster_id = found.get("cluster_id")
            servers = tuple(str(url) for url in found.get("servers", ()))
            return Kept(str(found["node_name"]), None if cluster_id is None else str(cluster_id), servers)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataDirError(
                f"{self._file} cannot be read ({error!r}): put it back from a copy, or remove it"
            ) from error

    def write(self, kept: Kept) -> None:
        """Keep it all. Raises DataDirError."""
        data = {**asdict(kept), "servers": list(kept.servers)}
        write_durably(self._file, json.dumps(data, indent=1).encode() + b"\n")

    def keep_cluster(self, cluster_id: str, servers: Sequence[str]) -> None:
        """Keep where the cluster is. Raises DataDirError."""
        kept = self.read()
        if kept is not None:
            self.write(replace(kept, cluster_id=cluster_id, servers=tuple(servers)))
