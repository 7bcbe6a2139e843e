"""Owns the table of the agent's settings. Those that a server has too mean the same and are named the same."""

from __future__ import annotations

from dataclasses import replace

from ipamd.settings import kinds
from ipamd.settings.table import DEL_POLICY, EVIDENCE, LOGGING, TABLE, Section, Setting

_OF_SERVER = {setting.name: setting for setting in TABLE}


def _like(name: str, **changes: object) -> Setting:
    return replace(_OF_SERVER[name], section=Section.AGENT, **changes)  # type: ignore[arg-type]


AGENT_TABLE: tuple[Setting, ...] = tuple(
    replace(setting, section=Section.AGENT)
    for setting in (
        _OF_SERVER["config"],
        Setting(
            "server",
            kinds.SERVERS,
            None,
            "A server of the cluster; given once for each that is known. One that answers is enough: it tells of the"
            " others, and they are remembered.",
            default_note="must be given",
        ),
        Setting(
            "token-file",
            kinds.PATH,
            None,
            "A file with a token of role `node` for this node; read again when it changes. Over plain HTTP it is sent"
            " on loopback only.",
            default_note="none; the servers must have tokens switched off",
        ),
        Setting(
            "enrol-file",
            kinds.PATH,
            None,
            "A file with a token of role `enrol`, the same on many hosts: while there is no `token-file`, the agent"
            " fetches this node's own token and keeps it there, with mode 0600.",
            default_note="`token-file` must be there",
        ),
        Setting(
            "tls-ca",
            kinds.PATH,
            None,
            "The authority that signs the servers' certificates; read again when it changes.",
            default_note="those that the system trusts",
        ),
        _like("socket", about="The node socket for CNI calls; mode 0600. Under socket activation it is systemd's."),
        _like("spool-dir", default="/var/lib/ipamd/spool"),
        Setting(
            "node-name",
            kinds.NAME,
            None,
            "The name of this host as a node that runs pods; kept with the spool. It must be given on a host that is"
            " called `localhost...`, and inside a container.",
            default_note="the host's name",
        ),
        _OF_SERVER["cluster"],
        DEL_POLICY,
        *EVIDENCE,
        *LOGGING,
    )
)
