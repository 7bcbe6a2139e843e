"""Owns the OpenAPI document: generated from the route table and the types that parse the requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

import ipamd
from ipamd.api.access import Least
from ipamd.api.exchange import Route, Text
from ipamd.api.problems import PROBLEM
from ipamd.api.schema.common import Problem
from ipamd.errors import ERRORS

_TEMPLATE = "#/components/schemas/{name}"
_variables = re.compile(r"\{(\w+)\}").findall
_ALWAYS = ("invalid_request", "unauthorized", "forbidden", "unavailable")


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    rows = list(routes)
    shapes = [shape for row in rows for shape in (row.body, row.query, row.answer) if shape not in (None, Text)]
    references, components = msgspec.json.schema_components([*shapes, Problem], ref_template=_TEMPLATE)
    found = dict(zip([*map(_name, shapes), _name(Problem)], references, strict=True))
    paths: dict[str, Any] = {}
    for row in rows:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row, found, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "ipamd", "version": ipamd.__version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _name(shape: Any) -> str:
    return repr(shape)


def _operation(row: Route, found: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{row.method.lower()}_{'_'.join(re.findall(r'[a-z0-9]+', row.path))}",
        "summary": row.summary,
        "parameters": [*_path_parameters(row), *_query_parameters(row, components), *_header_parameters(row)],
        "responses": {str(row.status): _success(row, found), **_errors(row, found)},
    }
    if row.least is not Least.ANYBODY:
        operation["security"] = [{"token": []}]
        operation["x-least-role"] = row.least.name.lower()
    if row.body is not None:
        operation["requestBody"] = {"required": True, "content": _json(found[_name(row.body)])}
    return operation


def _path_parameters(row: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in _variables(row.path)
    ]


def _query_parameters(row: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    schema = components[row.query.__name__]
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, "schema": own}
        for name, own in schema.get("properties", {}).items()
    ]


def _header_parameters(row: Route) -> list[dict[str, Any]]:
    if not row.writes:
        return []
    own = {"type": "string", "minLength": 1, "maxLength": 128}
    return [{"name": "Idempotency-Key", "in": "header", "required": False, "schema": own}]


def _success(row: Route, found: dict[str, Any]) -> dict[str, Any]:
    if row.answer is None:
        return {"description": "Done"}
    if row.answer is Text:
        return {"description": "Done", "content": {"text/plain": {"schema": {"type": "string"}}}}
    content = _json(found[_name(row.answer)])
    if row.also is not None:
        content[row.also] = {"schema": {"type": "string"}}
    return {"description": "Done", "content": content}


def _errors(row: Route, found: dict[str, Any]) -> dict[str, Any]:
    codes = row.codes if row.least is Least.ANYBODY else (*_ALWAYS, *row.codes)
    by_status: dict[str, list[str]] = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(str(ERRORS[code].status), []).append(code)
    content = {PROBLEM: {"schema": found[_name(Problem)]}}
    return {status: {"description": ", ".join(own), "content": content} for status, own in by_status.items()}


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
