"""Owns the kinds of settings: how a value from a file, the environment or a flag becomes a typed one.

Each reader takes text, or what TOML made of the value, and raises ValueError with the rest of a sentence that starts
with the value ("is not HOST:PORT").
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from ipamd.core.definition import LEAST_RECLAIM_S, DefinitionError, check_reclaim

MAX_SOCKET_PATH_BYTES = 107
"""What fits into sockaddr_un beside its closing NUL (unix(7))."""

API_PORT = 7480
"""Where the HTTP API listens by default."""

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,127}")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True)
class Kind:
    """A kind of value: its name in help and reference, and its reader."""

    name: str
    read: Callable[[object], object]
    is_flag: bool = False
    is_list: bool = False
    """The flag may be repeated; in the environment the values stand with white space between them."""


class Endpoint(NamedTuple):
    """A host and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        """HOST:PORT, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this host reaches it. A name other than `localhost` may mean anything."""
        address = _address(self.host)
        return self.host == "localhost" if address is None else address.is_loopback

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for every interface."""
        address = _address(self.host)
        return address is not None and address.is_unspecified


class Peer(NamedTuple):
    """A first member of a new cluster, as all of them are told of it."""

    name: str
    raft: Endpoint
    url: str

    def __str__(self) -> str:
        """NAME=HOST:PORT,URL."""
        return f"{self.name}={self.raft},{self.url}"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("is not a string")  # noqa: TRY004 - one exception for every bad value
    if not value or not value.isprintable():
        raise ValueError("is empty or has control characters")
    return value


def _path(value: object) -> Path:
    return Path(os.path.abspath(_text(value)))  # noqa: PTH100 - Path.resolve would follow links


def _socket_path(value: object) -> Path:
    path = _path(value)
    if len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
        raise ValueError(f"is longer than the {MAX_SOCKET_PATH_BYTES} bytes that a socket's path may have")
    return path


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = value.lower() if isinstance(value, str) else None
    if word not in _TRUE | _FALSE:
        raise ValueError("is neither true nor false")
    return word in _TRUE


def _name(value: object) -> str:
    text = _text(value)
    if not _NAME.fullmatch(text):
        raise ValueError("is not a name: 1 to 128 of A-Z a-z 0-9 _ . + -, the first a letter or digit")
    return text


def _endpoint(value: object) -> Endpoint:
    host, colon, port = _text(value).rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    is_plain = ":" not in host or (host.startswith("[") and host.endswith("]"))
    is_port = port.isascii() and port.isdigit() and int(port) < 65536
    if not (colon and bare and is_plain and is_port and _is_host(bare)):
        raise ValueError("is not HOST:PORT (IPv6 in brackets)")
    return Endpoint(bare, int(port))


def _is_host(text: str) -> bool:
    return _address(text) is not None or re.fullmatch(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252})", text) is not None


def _url(value: object) -> str:
    text = _text(value)
    problem = "is not a URL of the form http://HOST:PORT"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ValueError(problem) from error
    has_more = parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None
    if parts.scheme not in ("http", "https") or not parts.hostname or port is None or has_more:
        raise ValueError(problem)
    return text.rstrip("/")


def _server(value: object) -> str:
    """A URL whose port may be left out."""
    text = _text(value)
    try:
        parts = urlsplit(text)
        bare = parts.hostname is not None and parts.port is None
    except ValueError as error:
        raise ValueError("is not a URL of the form https://HOST:PORT") from error
    return _url(
        f"{parts.scheme}://{parts.netloc.rstrip(':')}:{API_PORT}" if bare and not parts.path.strip("/") else text
    )


def _servers(value: object) -> tuple[str, ...]:
    items = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not items:
        raise ValueError("is no list of URLs")
    return tuple(dict.fromkeys(_named(_server, item) for item in items))


def _directories(value: object) -> tuple[Path, ...]:
    """Directories, divided by `:` where they stand in one text; an empty text is none of them."""
    items = [part for part in value.split(":") if part] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)):
        raise ValueError("is no list of directories")  # noqa: TRY004 - one exception for every bad value
    return tuple(dict.fromkeys(_named(_path, item) for item in items))


def _peer(value: object) -> Peer:
    name, equals, rest = _text(value).partition("=")
    raft, comma, url = rest.partition(",")
    if not (equals and comma):
        raise ValueError("is not NAME=RAFT_HOST:PORT,URL")
    return Peer(_name(name), _endpoint(raft), _url(url))


def _peers(value: object) -> tuple[Peer, ...]:
    items = value.split() if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not items:
        raise ValueError("is no list of NAME=RAFT_HOST:PORT,URL")
    return tuple(_named(_peer, item) for item in items)


def _named(read: Callable[[object], T], item: object) -> T:
    """One of a list: what is wrong with it names it."""
    try:
        return read(item)
    except ValueError as problem:
        raise ValueError(f"has {item!r}, which {problem}") from None


def _reclaim(value: object) -> str:
    try:
        return check_reclaim(_text(value))
    except DefinitionError:
        raise ValueError(f"is neither never nor after:SECONDS, {LEAST_RECLAIM_S} at least") from None


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value):
        return int(value)
    raise ValueError("is not a whole number")


def integer(name: str, least: int, most: int) -> Kind:
    """A whole number between two bounds, both included."""

    def read(value: object) -> int:
        number = _integer(value)
        if not least <= number <= most:
            raise ValueError(f"is not between {least} and {most}")
        return number

    return Kind(name, read)


def choice(*words: str) -> Kind:
    """One of a few words."""

    def read(value: object) -> str:
        if value not in words:
            raise ValueError(f"is none of {', '.join(words)}")
        return str(value)

    return Kind("|".join(words), read)


PATH = Kind("PATH", _path)
SOCKET_PATH = Kind("PATH", _socket_path)
NAME = Kind("NAME", _name)
ENDPOINT = Kind("HOST:PORT", _endpoint)
URL = Kind("URL", _url)
SERVERS = Kind("URL", _servers, is_list=True)
DIRECTORIES = Kind("DIR", _directories, is_list=True)
PEERS = Kind("NAME=RAFT_HOST:PORT,URL", _peers, is_list=True)
RECLAIM = Kind("never|after:SECONDS", _reclaim)
FLAG = Kind("BOOLEAN", _flag, is_flag=True)
