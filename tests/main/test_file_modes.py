"""What each command writes is its owner's alone, whatever the umask: looked at after every command that writes files."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest

from ipamctl.main import cli
from ipamd.main import main
from tests.support.agent import Agent
from tests.support.host import wait_until
from tests.support.server import Server

BIN = Path(sys.executable).parent

SILENT = {
    "ipamd": {"version"},
    "ipamctl": {
        *(f"pool {verb}" for verb in ("create", "list", "show", "update", "delete", "usage", "confirm", "apply")),
        *(f"reservation {verb}" for verb in ("list", "show", "add", "release")),
        *(f"address {verb}" for verb in ("show", "history", "quarantine")),
        *("who", "why", "events", "note", "completion"),
        *(f"node {verb}" for verb in ("list", "show", "calls", "sync", "release", "rename", "forget", "confirm")),
        *(f"cluster {verb}" for verb in ("status", "add", "remove", "transfer")),
        *(f"token {verb}" for verb in ("list", "revoke")),
        *(f"settings {verb}" for verb in ("show", "set")),
        *(f"import {verb}" for verb in ("whereabouts", "host-local")),
        "cni test",
    },
}
"""These write no file."""


@pytest.fixture(autouse=True)
def careless() -> Iterator[None]:
    """An umask that takes nothing away: every mode is the program's own doing."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(root: Path) -> list[str]:
    """What group or others may do anything with, below a directory."""
    return sorted(
        f"{path.relative_to(root)} {stat.S_IMODE(path.lstat().st_mode):o}"
        for path in root.rglob("*")
        if stat.S_IMODE(path.lstat().st_mode) & 0o077
    )


def ran(program: str, *args: str | Path) -> None:
    command = [str(BIN / program), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr


def left(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def served(directory: Path) -> Server:
    """A server that has done a little of everything; it is stopped."""
    with Server(directory) as server:
        ran("ipamctl", "--server", f"unix:{server.socket}", "pool", "create", "p", "--subnet", "192.0.2.0/24")
        assert stat.S_IMODE(server.socket.stat().st_mode) == 0o600
        assert server.stop() == 0
    return server


def serve(directory: Path) -> set[str]:
    backups = directory / "backups"
    server = Server(directory, "--backup-dir", str(backups), "--backup-every-s", "1")
    with server:
        assert stat.S_IMODE(server.socket.stat().st_mode) == 0o600
        wait_until(lambda: list(backups.glob("*.sha256")), 60, "there is no backup")
        server.stop()
    server.log_file.unlink()  # the test's own
    return {"data/admin.token", "data/state.db", "data/identity.json", "data/journal", "data/spool", "backups"}


def doctor(directory: Path) -> set[str]:
    server = served(directory)
    server.log_file.unlink()
    with closing(sqlite3.connect(server.data_dir / "state.db")) as connection, connection:
        connection.execute("DELETE FROM free_spans")
    before = left(directory)
    ran("ipamd", "doctor", "--apply", "--data-dir", server.data_dir)
    assert left(directory) > before, "a copy is kept"
    return {"data/state.db"}


def agent(directory: Path) -> set[str]:
    (directory / "server").mkdir(0o700)
    with Server(directory / "server") as server:
        enrol = directory / "enrol.token"
        ran(
            *("ipamctl", "--server", f"unix:{server.socket}", "token", "create", "all"),
            *("--role", "enrol", "--secret-file", enrol),
        )
        flags = ("--token-file", str(directory / "own" / "node.token"), "--enrol-file", str(enrol))
        with Agent(directory, "w1", [server.url], *flags) as started:
            assert stat.S_IMODE(started.socket.stat().st_mode) == 0o600
            wait_until((directory / "own" / "node.token").exists, 60, "the node has no token")
            os.kill(server.pid, 19)
            assert started.cni("del", "c1").status == 200
            assert started.spooled
            os.kill(server.pid, 18)
            started.stop()
        started.log_file.unlink()
        server.stop()
    server.log_file.unlink()
    return {"own/node.token", "spool/agent.json", "enrol.token"}


def migrate(directory: Path) -> set[str]:
    server = served(directory)
    server.log_file.unlink()
    ran("ipamd", "migrate", "--data-dir", server.data_dir)
    return {"data/state.db"}


def restore(directory: Path) -> set[str]:
    backup(directory)
    ran("ipamd", "restore", directory / "b.db", "--data-dir", directory / "anew")
    ran("ipamd", "restore", "--from-member", directory / "data", "--data-dir", directory / "again")
    return {"anew/state.db", "anew/journal", "again/state.db"}


def backup(directory: Path) -> set[str]:
    with Server(directory) as server:
        ran("ipamctl", "--server", f"unix:{server.socket}", "backup", directory / "b.db")
        server.stop()
    server.log_file.unlink()
    return {"b.db", "b.db.sha256"}


def token_create(directory: Path) -> set[str]:
    with Server(directory) as server:
        file = directory / "deep" / "ci.token"
        ran(
            *("ipamctl", "--server", f"unix:{server.socket}", "token", "create", "ci"),
            *("--role", "reader", "--secret-file", file),
        )
    server.log_file.unlink()
    return {"deep/ci.token"}


def tls_init(directory: Path) -> set[str]:
    ran("ipamctl", "tls", "init", "--dir", directory / "tls")
    return {"tls/ca.crt", "tls/ca.key"}


def tls_issue(directory: Path) -> set[str]:
    tls_init(directory)
    ran("ipamctl", "tls", "issue", "n1", "--dir", directory / "tls")
    return {"tls/n1.crt", "tls/n1.key"}


def tls_renew(directory: Path) -> set[str]:
    tls_issue(directory)
    ran("ipamctl", "tls", "renew", "n1", "--dir", directory / "tls")
    return {"tls/n1.crt", "tls/n1.key"}


def cni_install(directory: Path) -> set[str]:
    ran("ipamctl", "cni", "install", "--bin-dir", directory)
    assert open_to_others(directory) == ["ipamd 755"], "a program for all, which nobody else can change"
    (directory / "ipamd").chmod(0o700)
    return {"ipamd"}


WRITING: dict[str, dict[str, Callable[[Path], set[str]]]] = {
    "ipamd": {"serve": serve, "agent": agent, "migrate": migrate, "restore": restore, "doctor": doctor},
    "ipamctl": {
        "backup": backup,
        "token create": token_create,
        "tls init": tls_init,
        "tls issue": tls_issue,
        "tls renew": tls_renew,
        "cni install": cni_install,
    },
}
"""Each leaves files in a directory, and says which of them there must be."""


def verbs(group: click.Group) -> set[str]:
    context = click.Context(group)
    found = set()
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found |= {f"{name} {verb}" for verb in verbs(command)} if isinstance(command, click.Group) else {name}
    return found


@pytest.mark.parametrize(("program", "group"), [("ipamd", main), ("ipamctl", cli)])
def test_every_command_is_looked_at_or_writes_nothing(program: str, group: click.Group) -> None:
    assert verbs(group) == SILENT[program] | set(WRITING[program])
    assert SILENT[program] & set(WRITING[program]) == set()


@pytest.mark.parametrize(
    ("program", "command"), [(program, command) for program, commands in WRITING.items() for command in commands]
)
def test_what_a_command_writes_is_its_owners_alone(program: str, command: str, tmp_path: Path) -> None:
    directory = tmp_path / "x"
    directory.mkdir(0o700)
    wanted = WRITING[program][command](directory)
    assert wanted <= left(directory)
    assert open_to_others(directory) == []
