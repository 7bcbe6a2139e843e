"""Owns the network configuration as JSON: decoding it with limits, and reading typed values with clear sentences.

Undecodable input has code 6, a value of the wrong type code 7. Unknown keys are ignored. `null` is as good as absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from ipamd.cni.errors import BAD_CONFIG, BAD_JSON, CniError
from ipamd.cni.versions import NEWEST, echoed_version
from ipamd.core.names import InvalidName, check_network

DEPTH = 16
"""How deep a configuration may be nested; those of chained plugins with a prevResult have 5 levels."""

Json = dict[str, Any]


def decode(body: bytes, *, strict: bool) -> Json:
    """The configuration. Not strict (DEL): double keys and deep nesting are taken as they are. Raises CniError."""
    if not body.strip():
        raise CniError(BAD_JSON, "the network configuration on stdin is empty")
    try:
        text = body.decode()
        conf = _strict(text) if strict else json.loads(text)
    except UnicodeDecodeError as error:
        raise CniError(BAD_JSON, f"the network configuration is not UTF-8: bad byte at offset {error.start}") from None
    except RecursionError:
        raise _too_deep() from None
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


def _strict(source: str) -> Any:
    conf = json.loads(source, object_pairs_hook=_object, parse_constant=_constant)
    # Most configurations have fewer brackets than levels allowed, and need no walk.
    if source.count("{") + source.count("[") > DEPTH:
        _check_depth(conf, DEPTH)
    return conf


def _object(pairs: list[tuple[str, Any]]) -> Json:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {shown(twice)} is there twice")
    return made


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _check_depth(value: object, left: int) -> None:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else None
    if inner is None:
        return
    if left == 0:
        raise _too_deep()
    for item in inner:
        _check_depth(item, left - 1)


def _too_deep() -> CniError:
    return CniError(BAD_JSON, f"the network configuration is nested deeper than {DEPTH} levels")
