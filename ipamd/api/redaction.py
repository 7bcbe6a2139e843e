"""Owns what a caller does not get to see: the ids of containers, since knowing one is enough to forge a DEL.

Operators and administrators see all of them, a node those of its own containers, everybody else none. It is done to
whole answers, whatever route they are of: fields, sentences, and the names of pods that are named after a container.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from ipamd.api.access import Caller
from ipamd.core.model import Role
from ipamd.errors import ApiError

FIELD: Final = "container_id"
SHOWN_OF_LONG: Final = 8
"""So many characters of a long id tell one container from another, and forge nothing."""

MASK: Final = "..."
_LONG: Final = 32
_ID: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_SENTENCE: Final = re.compile(rf"\b(container )('?)({_ID})")
_POD: Final = re.compile(rf"(?<![\w/.+-])((?:([\w.+-]+):)?_/([\w.+-]+)/)({_ID})", re.ASCII)


def sees_all(caller: Caller) -> bool:
    """Whether nothing is hidden from a caller."""
    return caller.role in (Role.OPERATOR, Role.ADMIN)


def redacted(value: Any, caller: Caller, whose: str | None = None) -> Any:
    """An answer as the caller may see it; `whose`: the node that all of it is of."""
    return value if sees_all(caller) else _hidden(value, caller.node, whose)


def redacted_error(error: ApiError, caller: Caller) -> ApiError:
    """An error as the caller may see it."""
    if sees_all(caller):
        return error
    return ApiError(error.row.code, _hidden(error.detail, caller.node, None), **_hidden(error.extra, caller.node, None))


def redacted_sentence(text: str, caller: Caller, known: str | None) -> str:
    """A sentence for whoever calls for the container `known`."""
    return text if sees_all(caller) else _sentence(text, caller.node, known)


def masked(container_id: str) -> str:
    """What stands for the id of a container."""
    return f"{container_id[:SHOWN_OF_LONG] if len(container_id) >= _LONG else ''}{MASK}"


def _hidden(value: Any, own: str | None, whose: str | None) -> Any:
    if isinstance(value, str):
        return _sentence(value, own, None)
    if isinstance(value, msgspec.Struct):
        return _hidden_struct(value, own, whose)
    if type(value) in (tuple, list):
        return type(value)(_hidden(item, own, whose) for item in value)
    if isinstance(value, dict):
        return {key: _hidden(item, own, whose) for key, item in value.items()}
    return value


def _hidden_struct(value: msgspec.Struct, own: str | None, whose: str | None) -> msgspec.Struct:
    node = getattr(value, "node", whose)
    if own is not None and node == own:
        return value
    changed: dict[str, Any] = {}
    for name in value.__struct_fields__:
        old = getattr(value, name)
        new = None if name == FIELD else _hidden(old, own, node)
        if new is not old:
            changed[name] = new
    return msgspec.structs.replace(value, **changed) if changed else value


def _sentence(text: str, own: str | None, known: str | None) -> str:
    def hide_container(found: re.Match[str]) -> str:
        return found[0] if found[3].rstrip(".") == known else f"{found[1]}{found[2]}{masked(found[3].rstrip('.'))}"

    def hide_pod(found: re.Match[str]) -> str:
        node = found[3] if found[2] is None else f"{found[2]}:{found[3]}"
        return found[0] if node == own or found[4] == known else f"{found[1]}{masked(found[4])}"

    if "container " in text:
        text = _SENTENCE.sub(hide_container, text)
    return _POD.sub(hide_pod, text) if "_/" in text else text
