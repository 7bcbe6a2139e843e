"""Owns the state on disk: SQLite through SQLAlchemy, nowhere else in the project."""
