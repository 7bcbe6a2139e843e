"""Owns the one shape that every error has: a problem document (RFC 9457), or a CNI error object for CNI calls."""

from __future__ import annotations

import logging
import math

import msgspec
from aiohttp import web

from ipamd.core.ports import Unavailable
from ipamd.errors import ApiError

PROBLEM = "application/problem+json"

_log = logging.getLogger("ipamd.api")

_BY_STATUS = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    429: "too_many_requests",
    503: "unavailable",
}


class Failure(Exception):  # noqa: N818 - what a request ended in
    """Ends a request with an error and headers that go with it."""

    def __init__(self, error: ApiError, headers: dict[str, str]) -> None:
        super().__init__(error.detail)
        self.error, self.headers = error, headers


def failure_of(error: BaseException, request_id: str) -> Failure:
    """What an exception is to the caller. What nobody foresaw is logged whole, and told as no more than that."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, ApiError):
        return Failure(error, _headers(error))
    if isinstance(error, Unavailable):
        retry = {"Retry-After": str(max(1, math.ceil(error.retry_after_s)))}
        return Failure(ApiError("unavailable", error.detail, outcome=error.outcome), retry)
    if isinstance(error, web.HTTPException):
        return _of_http(error)
    if isinstance(error, web.RequestPayloadError):
        return Failure(ApiError("invalid_request", "the body ended before its time"), {"Connection": "close"})
    _log.error("a request failed for a reason that nobody foresaw", exc_info=error, extra={"request_id": request_id})
    return Failure(ApiError("internal", "the server made a mistake; its log has the request id"), {})


def respond(failure: Failure, request_id: str, headers: dict[str, str]) -> web.Response:
    """The problem document."""
    error = failure.error
    document = {
        "type": f"urn:ipamd:error:{error.row.code}",
        "title": error.row.title,
        "status": error.row.status,
        "detail": error.detail,
        "code": error.row.code,
        "request_id": request_id,
        **error.extra,
    }
    return web.Response(
        status=error.row.status,
        body=msgspec.json.encode(document),
        headers={**headers, **failure.headers, "Content-Type": PROBLEM},
    )


def _headers(error: ApiError) -> dict[str, str]:
    match error.row.code:
        case "unauthorized":
            return {"WWW-Authenticate": 'Bearer realm="ipamd"'}
        case "too_many_requests" | "unavailable":
            return {"Retry-After": "1"}
        case _:
            return {}


def _of_http(error: web.HTTPException) -> Failure:
    """An error of aiohttp's own: no such path, another method, a body that is too large."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        detail = f"{error.method} is not allowed here; allowed: {allowed}"
        return Failure(ApiError("method_not_allowed", detail), {"Allow": allowed})
    code = _BY_STATUS.get(error.status, "invalid_request" if error.status < 500 else "internal")
    if code == "not_found":
        return Failure(ApiError(code, "there is nothing at this path"), {})
    if code == "too_large":
        return Failure(ApiError(code, "the body is larger than 1 MiB"), {"Connection": "close"})
    return Failure(ApiError(code, error.reason.lower()), {})
