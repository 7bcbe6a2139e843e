"""Owns what tables are made of: columns of the few types that there are, and the rules that they share."""

# ruff: noqa: D103 - the names say it all

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKey, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.sql.schema import SchemaItem

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def table(name: str, *items: SchemaItem, rowid: bool = True) -> Table:
    return Table(name, metadata, *items, sqlite_strict=True, sqlite_with_rowid=rowid)


def text(name: str, *, null: bool = False) -> Column[str]:
    return Column(name, Text, nullable=null)


def integer(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, Integer, nullable=null)


def blob(name: str, *, null: bool = False) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=null)


def identity() -> Column[int]:
    return Column("id", Integer, primary_key=True, nullable=False)


def check(name: str, condition: str) -> CheckConstraint:
    return CheckConstraint(condition, name=name)


def is_address(column: str) -> CheckConstraint:
    return check(column, f"length({column}) IN (4, 16)")


def is_flag(column: str) -> CheckConstraint:
    return check(column, f"{column} IN (0, 1)")


def parent(target: str, *, owned: bool = False) -> ForeignKey:
    """A foreign key; `owned`: the row goes with its parent."""
    return ForeignKey(target, deferrable=True, initially="DEFERRED", ondelete="CASCADE" if owned else None)
