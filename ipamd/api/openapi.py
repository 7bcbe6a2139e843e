"""Owns the OpenAPI document: generated from the route table and the types that parse the requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

import ipamd
from ipamd.api.access import Least
from ipamd.api.endpoint import MAX_KEY
from ipamd.api.exchange import Route, Text
from ipamd.api.problems import PROBLEM
from ipamd.api.schema.problem import Problem
from ipamd.errors import ERRORS

_TEMPLATE = "#/components/schemas/{name}"
_variables = re.compile(r"\{(\w+)\}").findall
_ALWAYS = ("invalid_request", "forbidden", "too_many_requests", "unavailable")
_TO_KNOWN = ("unauthorized",)
_OF_WRITES = ("idempotency_conflict", "too_large")
_OF_VARIABLE_PATHS = ("not_found", "method_not_allowed")
"""A part of a path may be such that it leads to another route."""

_HEADERS = {
    "X-Request-Id": {"description": "The request's id: the caller's, or a new one", "schema": {"type": "string"}},
    "Ipamd-Index": {"description": "The log index that the answer reflects", "schema": {"type": "integer"}},
    "Retry-After": {"description": "In how many seconds to come again", "schema": {"type": "integer"}},
}


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    rows = list(routes)
    shapes = [shape for row in rows for shape in (row.body, row.query, row.answer) if shape not in (None, Text)]
    references, components = msgspec.json.schema_components([*shapes, Problem], ref_template=_TEMPLATE)
    _close(components)
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
            "headers": _HEADERS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _close(components: dict[str, Any]) -> None:
    """Say of each object with named members that it has no others."""
    for schema in components.values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)


def _name(shape: Any) -> str:
    return repr(shape)


def _operation(row: Route, found: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{row.method.lower()}_{'_'.join(re.findall(r'[a-z0-9]+', row.path))}",
        "summary": row.summary,
        "parameters": [*_path_parameters(row), *_query_parameters(row, components), *_header_parameters(row)],
        "responses": {**_successes(row, found), **_errors(row, found)},
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
    own = {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[ -~]+$"}
    return [{"name": "Idempotency-Key", "in": "header", "required": False, "schema": own}]


def _successes(row: Route, found: dict[str, Any]) -> dict[str, Any]:
    response: dict[str, Any] = {"description": "Done", "headers": _headers("X-Request-Id", "Ipamd-Index")}
    if row.answer is Text:
        response["content"] = {"text/plain": {"schema": {"type": "string"}}}
    elif row.answer is not None:
        response["content"] = _json(found[_name(row.answer)])
        if row.also is not None:
            response["content"][row.also] = {"schema": {"type": "string"}}
    return {str(status): response for status in (row.status, row.or_status) if status is not None}


def _errors(row: Route, found: dict[str, Any]) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for code in sorted(_codes(row)):
        by_status.setdefault(ERRORS[code].status, []).append(code)
    content = {PROBLEM: {"schema": found[_name(Problem)]}}
    return {
        str(status): {"description": ", ".join(own), "headers": _headers_of(status), "content": content}
        for status, own in sorted(by_status.items())
    }


def _codes(row: Route) -> set[str]:
    codes = {*_ALWAYS, *row.codes}
    if row.least is not Least.ANYBODY:
        codes.update(_TO_KNOWN)
    if row.writes:
        codes.update(_OF_WRITES)
    if _variables(row.path):
        codes.update(_OF_VARIABLE_PATHS)
    return codes


def _headers_of(status: int) -> dict[str, Any]:
    more = ("Retry-After",) if status in {429, 503} else ()
    return _headers("X-Request-Id", "Ipamd-Index", *more)


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
