"""Owns the one table from stable error codes to HTTP statuses and CNI error codes, and the exception of the shell.

The core refuses with values (core.outcomes.Refused); the shell raises ApiError; both end in the same table, so that
API, plugin, CLI and docs say the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class ErrorCode(NamedTuple):
    """One row: the code, its HTTP status, a title for people, and the CNI code it has on the node socket."""

    code: str
    status: int
    title: str
    cni: int


_ROWS = (
    ErrorCode("invalid_request", 400, "The request is not valid", 7),
    ErrorCode("unauthorized", 401, "A valid token is required", 112),
    ErrorCode("forbidden", 403, "The token does not allow this", 112),
    ErrorCode("not_found", 404, "There is nothing here", 7),
    ErrorCode("pool_not_found", 404, "There is no such pool", 7),
    ErrorCode("reservation_not_found", 404, "There is no such reservation", 113),
    ErrorCode("method_not_allowed", 405, "The method is not allowed here", 7),
    ErrorCode("pool_exists", 409, "A different pool has this name", 7),
    ErrorCode("pool_in_use", 409, "The pool is in use", 7),
    ErrorCode("pool_overlaps", 409, "The pool overlaps another", 7),
    ErrorCode("pool_exhausted", 409, "The pool has no free address", 110),
    ErrorCode("address_taken", 409, "The address is taken", 111),
    ErrorCode("address_not_allowed", 409, "The address is not allowed", 111),
    ErrorCode("bound", 409, "The reservation is bound", 111),
    ErrorCode("contested", 409, "Another node still has it alive", 11),
    ErrorCode("late", 409, "The call came too late", 114),
    ErrorCode("idempotency_conflict", 409, "The idempotency key was used for another request", 7),
    ErrorCode("member_exists", 409, "The name or the id is another member's", 7),
    ErrorCode("last_member", 409, "It is the last member with a vote", 7),
    ErrorCode("in_conflict", 409, "Two pods use one address", 11),
    ErrorCode("enrolled", 409, "The node has its token already", 7),
    ErrorCode("old_member", 409, "The member's program is too old", 7),
    ErrorCode("import_conflict", 409, "The import contradicts what is there", 7),
    ErrorCode("other_cluster", 409, "The request is meant for another cluster", 7),
    ErrorCode("gone", 410, "The data is not kept any more", 7),
    ErrorCode("too_large", 413, "The request is too large", 7),
    ErrorCode("too_many_requests", 429, "Too many requests", 11),
    ErrorCode("internal", 500, "The server made a mistake", 11),
    ErrorCode("unavailable", 503, "No answer can be had now", 11),
)

ERRORS: dict[str, ErrorCode] = {row.code: row for row in _ROWS}
"""All codes of the interface, section 6."""


class ApiError(Exception):
    """Ends a request with a problem document (RFC 9457). `extra` are further members of it."""

    def __init__(self, code: str, detail: str, **extra: Any) -> None:
        super().__init__(detail)
        self.row = ERRORS[code]
        self.detail = detail
        self.extra = extra
