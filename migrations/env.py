"""Owns how alembic meets the state database: on a connection that the program opened, inside its transaction."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=context.config.attributes.get("target_metadata"),
    render_as_batch=True,  # SQLite changes a table by making it anew
)
context.run_migrations()
