"""Owns docs/reference/openapi.md: made from the OpenAPI document. `python -m tests.docs.openapi_page` writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ipamd.api.openapi import document
from ipamd.api.routes import ROUTES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "openapi.md"

INTRODUCTION = """\
# HTTP API: requests and objects

<!-- Made from the types that parse the requests by `python -m tests.docs.openapi_page`. -->

What `GET /openapi.json` says, to be read by people: of each route its parameters, its body and its answers, then every object with
its fields. [HTTP API](api.md) says what holds for all of them. In a body a field without a default must be there; others are refused.
"""

_ALWAYS = {"400", "401", "403", "404", "405", "413", "429", "503"}
_LIST = re.compile(r"Items_(\w+)_")


def page() -> str:
    """The whole page."""
    described = document(ROUTES)
    parts = [INTRODUCTION, "## Routes\n"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            parts += [f"### {method.upper()} {path}\n", *_operation(operation), ""]
    parts.append("## Objects\n")
    for name, schema in sorted(described["components"]["schemas"].items(), key=lambda item: _called(item[0])):
        if not name.endswith("Query") and not _LIST.fullmatch(name):
            parts += [f"### {_called(name)}\n", f"{schema.get('description', '')}\n", *_fields(schema), ""]
    return "\n".join(parts).rstrip() + "\n"


def _operation(operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"{operation['summary']}. Least role: {operation.get('x-least-role', 'none')}.\n"
    for parameter in operation["parameters"]:
        if parameter["in"] == "query":
            yield f"- `?{parameter['name']}=`: {_type(parameter['schema'])}{_default(parameter['schema'])}"
    if "requestBody" in operation:
        yield f"- body: {_content(operation['requestBody'])}"
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            yield f"- {status}: {_content(response) or response['description']}"
    errors = [answer["description"] for status, answer in operation["responses"].items() if status not in _ALWAYS]
    if named := ", ".join(error for error in errors if "_" in error):
        yield f"- may be refused as: {named}"


def _content(holder: Mapping[str, Any]) -> str:
    return " or ".join(
        _type(kind["schema"]) if kind.get("schema") else f"`{name}`" for name, kind in holder.get("content", {}).items()
    )


def _fields(schema: Mapping[str, Any]) -> Iterator[str]:
    properties = schema.get("properties", {})
    if not properties:
        return
    yield "| field | type | default |"
    yield "|---|---|---|"
    required = set(schema.get("required", ()))
    for name, field in properties.items():
        default = (
            "must be there" if name in required else _default(field).removeprefix(", default ") or "may be left out"
        )
        yield f"| `{name}` | {_type(field)} | {default} |"


def _default(schema: Mapping[str, Any]) -> str:
    return f", default `{_json(schema['default'])}`" if "default" in schema else ""


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _type(schema: Mapping[str, Any]) -> str:
    """A type in words, with its bounds."""
    if "$ref" in schema:
        return _reference(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{_json(value)}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}" if schema.get("items") else "list"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"object of {_type(inner)}" if isinstance(inner, Mapping) and inner else "object"
    return f"{schema.get('type', 'any JSON')}{_bounds(schema)}"


def _bounds(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum", schema.get("minLength")), schema.get("maximum", schema.get("maxLength"))
    of = " characters" if schema.get("type") == "string" else ""
    if least is None and most is None:
        return ""
    if most is None:
        return f" (from {least}{of})"
    return f" (to {most}{of})" if least is None else f" ({least} to {most}{of})"


def _reference(name: str) -> str:
    found = _LIST.fullmatch(name)
    called = _called(found[1] if found else name)
    link = f"[{called}](#{re.sub(r'[^a-z0-9]', '', called.lower())})"
    return f"page of {link}" if found else link


def _called(name: str) -> str:
    """A type's name on the page: those that two modules have keep what tells them apart."""
    *home, last = name.split(".")
    return f"{last}{home[-1].capitalize()}" if home else last


if __name__ == "__main__":
    PAGE.write_text(page())
