"""Owns the network configuration as JSON: decoding it with limits, and reading typed values with clear sentences.

Undecodable input has code 6, a value of the wrong type code 7. Unknown keys are ignored. `null` is as good as absent.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from ipamd.cni.errors import BAD_CONFIG, BAD_JSON, CniError
from ipamd.cni.versions import NEWEST, echoed_version
from ipamd.core import strictjson
from ipamd.core.names import InvalidName, check_network

Json = dict[str, Any]


def decode(body: bytes, *, strict: bool) -> Json:
    """The configuration. Not strict (DEL): double keys and deep nesting are taken as they are. Raises CniError."""
    if not body.strip():
        raise CniError(BAD_JSON, "the network configuration on stdin is empty")
    try:
        conf = strictjson.read(body) if strict else json.loads(body.decode())
    except strictjson.BadJson as error:
        raise CniError(BAD_JSON, f"the network configuration {error}") from None
    except RecursionError:
        raise CniError(BAD_JSON, "the network configuration is nested too deep") from None
    except ValueError as error:
        raise CniError(BAD_JSON, f"the network configuration cannot be decoded: {error}") from None
    if not isinstance(conf, dict):
        raise CniError(BAD_JSON, f"the network configuration must be an object, not {shown(conf)}")
    return conf


def version_of(body: bytes) -> str:
    """The version that an error object about this configuration must have, whatever is wrong with it."""
    try:
        return echoed_version(decode(body, strict=False).get("cniVersion"))
    except CniError:
        return NEWEST


def read_network(conf: Json) -> str:
    """The name of the CNI network. Raises CniError."""
    name = conf.get("name")
    if name is None or name == "":
        raise CniError(BAD_CONFIG, "the network configuration has no name")
    try:
        return check_network(text(name, "name"), "name")
    except InvalidName as error:
        raise CniError(BAD_CONFIG, str(error)) from None


def text(value: object, where: str) -> str:
    """A string. Raises CniError."""
    return value if isinstance(value, str) else wrong(where, "a string", value)


def mapping(value: object, where: str) -> Json:
    """An object; an empty one for null. Raises CniError."""
    if value is None:
        return {}
    return value if isinstance(value, dict) else wrong(where, "an object", value)


def sequence(value: object, where: str) -> list[Any]:
    """A list; an empty one for null. Raises CniError."""
    if value is None:
        return []
    return value if isinstance(value, list) else wrong(where, "a list", value)


def texts(value: object, where: str) -> tuple[str, ...]:
    """A list of strings; an empty one for null. Raises CniError."""
    return tuple(text(item, f"{where}[{i}]") for i, item in enumerate(sequence(value, where)))


def flag(value: object, where: str) -> bool:
    """A boolean; false for null. Raises CniError."""
    if value is None:
        return False
    return value if isinstance(value, bool) else wrong(where, "true or false", value)


def wrong(where: str, wanted: str, value: object) -> NoReturn:
    """Refuse a value of the wrong type."""
    raise CniError(BAD_CONFIG, f"{where} must be {wanted}, not {shown(value)}")


def shown(value: object) -> str:
    """A value in a sentence: as JSON in plain ASCII, cut where it would drown the rest."""
    whole = json.dumps(value)
    return whole if len(whole) <= 64 else f"{whole[:61]}..."
