"""Owns the way from SQLAlchemy's statements to SQL text for the driver.

A statement is built and compiled once, at import, and runs on the driver's own cursor with its parameters in order of
appearance: ten statements of an ADD cost a tenth of what they cost when SQLAlchemy carries out each.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Delete, Select, Table, bindparam
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler, SQLiteDialect
from sqlalchemy.sql.expression import BindParameter, ClauseElement

LARGEST: Final = 2**63 - 1
"""The largest integer that SQLite holds."""


class _Compiler(SQLiteCompiler):
    def limit_clause(self, select: Select[Any], **options: Any) -> str:
        """LIMIT alone: the dialect's own adds an OFFSET that nobody asked for."""
        limit = select._limit_clause  # noqa: SLF001 - what a dialect's compiler is given
        return "" if limit is None else f"\n LIMIT {self.process(limit, **options)}"


class _Dialect(SQLiteDialect):
    statement_compiler = _Compiler
    supports_statement_cache = False


_DIALECT = _Dialect(paramstyle="qmark")


def sql(statement: ClauseElement) -> str:
    """The SQL text of a statement, whose only parameters are those made by `value`."""
    compiled = statement.compile(dialect=_DIALECT)
    hidden = [name for name, value in compiled.params.items() if value is not None]
    if hidden:
        raise TypeError(f"{compiled} hides the constants {hidden}")
    return str(compiled)


def value(name: str) -> BindParameter[Any]:
    """A parameter. Each takes the next place in the order of the text."""
    return bindparam(name)


def insert(table: Table) -> str:
    """INSERT of a whole row; one with the same key is an error."""
    return sql(sqlite.insert(table))


def put(table: Table, only_if_same: str | None = None) -> str:
    """INSERT of a whole row, or UPDATE of the row with the same primary key where the named column is equal."""
    new = sqlite.insert(table)
    keys = [column.name for column in table.primary_key]
    rest = [column.name for column in table.columns if column.name not in keys]
    changed = {name: new.excluded[name] for name in rest or keys}
    condition = table.c[only_if_same] == new.excluded[only_if_same] if only_if_same else None
    return sql(new.on_conflict_do_update(index_elements=keys, set_=changed, where=condition))


def drop(table: Table) -> str:
    """DELETE by the primary key."""
    statement: Delete = table.delete()
    for column in table.primary_key:
        statement = statement.where(column == value(column.name))
    return sql(statement)
