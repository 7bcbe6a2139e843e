"""Owns the reference page of the settings, made from the table: docs/reference/settings.md."""

from __future__ import annotations

from collections.abc import Iterator

from ipamd.settings.agent import AGENT_TABLE
from ipamd.settings.table import TABLE, Section, Setting

_HEAD = """# Settings of `ipamd serve` and `ipamd agent`

<!-- Made from the tables in ipamd/settings by `python -m ipamd.settings`; edit that. -->

`ipamd serve` needs none of them, but a name inside a container; `ipamd agent` needs `server`. Each has one name and
comes from, weakest first: the built-in default, the TOML file named by `config`, the environment, the command line. In
the file the name is the key (`data-dir = "/srv/ipamd"`), in the environment it is `IPAMD_DATA_DIR`, on the command line
`--data-dir`. An unknown key of the file is a mistake; an unknown variable is not looked at, an empty one counts as not
set. On the command line a boolean is switched off by `--no-NAME`, and what is a list is given once for each item; in
the environment its items stand with spaces between them, in the file they are an array.

All mistakes are reported together before a port is opened; the exit status is then 2.
"""

_NOTES = {
    Section.MEMBER: "",
    Section.CLUSTER: "Peers without TLS are accepted only on loopback and with `insecure`.\n",
    Section.FIRST: "These are replicated: they count once, when a new cluster is founded. Later `ipamctl settings set`"
    " or `PUT /v1/settings` changes them, for all members; there the names have underscores, though `ipamctl` takes"
    " both.\n",
    Section.BACKUP: "`ipamctl backup FILE` makes one whenever it is wanted, without any of these.\n",
    Section.TIMING: "",
    Section.AGENT: "Of `ipamd agent`, which has these and no others.\n",
}


def page() -> str:
    """The whole page, as Markdown."""
    return "\n".join([_HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for section in Section:
        rows = [_row(setting) for setting in (*TABLE, *AGENT_TABLE) if setting.section is section]
        table = ["| setting | value | default | meaning |", "|---|---|---|---|", *rows]
        yield "\n".join([f"## {section}\n", *([_NOTES[section]] if _NOTES[section] else []), *table, ""])


def _row(setting: Setting) -> str:
    default = f"`{setting.default}`" if setting.default is not None else setting.default_note
    kind = setting.kind.name.replace("|", "\\|")
    return f"| `{setting.name}` | `{kind}` | {default} | {setting.about} |"
