"""What the operating system tells: clocks, and whether a namespace is the one that was seen."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from ipamd import system
from ipamd.core.evidence import Look


def test_a_namespace_is_told_by_its_inode(tmp_path: Path) -> None:
    namespaces, path = system.Namespaces(), tmp_path / "netns"
    assert namespaces.inode(str(path)) is None
    path.write_text("")
    inode = namespaces.inode(str(path))
    assert inode == path.stat().st_ino
    assert namespaces.alive(str(path), inode) is True
    assert namespaces.alive(str(path), None) is None
    assert namespaces.alive(str(path), inode + 1) is False
    path.unlink()
    assert namespaces.alive(str(path), inode) is False


@pytest.mark.parametrize("path", ["a\0b", "/proc/self/status/x", "", "x" * 5000])
def test_a_path_that_is_none_has_no_namespace(path: str) -> None:
    assert system.Namespaces().inode(path) is None
    assert system.Namespaces().alive(path, 1) is not True


@pytest.mark.parametrize("path", ["/proc/self/ns/net", "/proc/thread-self/ns/net", "//proc/./self//ns/net"])
def test_what_each_reader_has_for_itself_is_nobodys_namespace(path: str) -> None:
    """It would be this process's own, which lives as long as it looks."""
    own = Path(path).stat().st_ino
    assert system.Namespaces().inode(path) is None
    assert system.Namespaces().look(path) == Look(None)
    assert system.Namespaces().alive(path, own) is None
    assert system.Namespaces().alive(f"/proc/{os.getpid()}/ns/net", own) is True


def test_a_small_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("nameserver 192.0.2.53\n# caf\u00e9\n")
    assert system.read_text(str(path)) == path.read_text()
    path.write_bytes(b"x" * system.MAX_TEXT_BYTES)
    assert len(system.read_text(str(path))) == system.MAX_TEXT_BYTES


def test_what_is_no_small_text_is_not_read_and_not_waited_for(tmp_path: Path) -> None:
    pipe, large, binary = tmp_path / "pipe", tmp_path / "large", tmp_path / "binary"
    os.mkfifo(pipe)
    large.write_bytes(b"x" * (system.MAX_TEXT_BYTES + 1))
    binary.write_bytes(b"\xff")
    for path in (pipe, large, binary, tmp_path, tmp_path / "nothing", "/dev/zero", "a\0b"):
        with pytest.raises((OSError, ValueError)):
            system.read_text(str(path))


def test_the_clocks_go_on() -> None:
    clock = system.SystemClock()
    before_s, before_ms = clock.monotonic_s(), clock.wall_ms()
    assert clock.monotonic_s() >= before_s
    assert before_ms > 1_600_000_000_000


def test_random_bytes_are_as_many_as_asked_and_differ() -> None:
    assert len(system.random_bytes(16)) == 16
    assert system.random_bytes(16) != system.random_bytes(16)


def test_the_host_has_a_name() -> None:
    assert system.host().name


def test_the_file_limit_is_never_lowered() -> None:
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, most), most))
        system.raise_file_limit()
        raised, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised == min(system.MAX_FILES, most)
        system.raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == raised
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))
