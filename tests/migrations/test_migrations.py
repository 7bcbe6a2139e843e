"""Migrations: they lead to the tables, from every format that was released, all or nothing, with a copy kept."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from ipamd.storage import migrate
from ipamd.storage.database import FILE_NAME, FORMAT, connect, file_format, prepare
from ipamd.storage.errors import DiskFull, ForeignFile, told_of_damage
from ipamd.storage.tables import ALL
from tests.storage.driver import Driver
from tests.storage.pods import add, pool

SCHEMA = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'alembic%'"


def normalised(statement: str) -> str:
    return re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", statement.replace('"', ""))).strip()


def test_tables_and_migrations_agree_to_the_letter(tmp_path: Path) -> None:
    wanted = [CreateTable(table) for table in ALL] + [CreateIndex(one) for table in ALL for one in table.indexes]
    Driver(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        made = [row[0] for row in connection.execute(SCHEMA)]
    assert sorted(map(normalised, made)) == sorted(
        normalised(str(one.compile(dialect=sqlite.dialect()))) for one in wanted
    )


def test_alembic_sees_no_difference_either(tmp_path: Path) -> None:
    Driver(tmp_path).close()
    with create_engine(f"sqlite:///{tmp_path / FILE_NAME}").connect() as connection:
        command.check(migrate.configuration(connection))
        connection.engine.dispose()


def test_each_migration_is_one_format(tmp_path: Path) -> None:
    path = prepare(tmp_path)
    with closing(connect(path)) as connection:
        with create_engine("sqlite://").connect() as bound:
            scripts = ScriptDirectory.from_config(migrate.configuration(bound))
        revisions = [one.revision for one in scripts.walk_revisions()][::-1]
        assert len(revisions) == FORMAT
        for number, revision in enumerate(revisions, 1):
            migrate.upgrade(connection, revision)
            assert connection.execute("PRAGMA user_version").fetchone() == (number,)


def test_a_migration_that_finds_no_room_is_told_as_such_and_changes_nothing(tmp_path: Path) -> None:
    path = prepare(tmp_path)
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA max_page_count = 8")
        with pytest.raises(DiskFull, match=f"no space is left for {path}"), told_of_damage(path):
            migrate.upgrade(connection)
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    assert file_format(path) == 0


def test_migrations_depend_on_no_code_of_ours() -> None:
    for path in migrate.scripts().rglob("*.py"):
        assert not re.search(r"^\s*(from|import) (ipamd|tests)", path.read_text(), re.MULTILINE), path


def test_an_empty_file_is_brought_up_without_a_copy(tmp_path: Path) -> None:
    path = prepare(tmp_path)
    assert file_format(path) == 0
    assert migrate.migrate(path) is None
    assert file_format(path) == FORMAT
    assert migrate.migrate(path) is None
    assert [one.name for one in tmp_path.iterdir() if "format" in one.name] == []


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, scripts = prepare(tmp_path / "data"), tmp_path / "scripts"
    (scripts / "versions").mkdir(parents=True)
    for source in ("env.py", "versions/0001_initial.py"):
        (scripts / source).write_text((migrate.scripts() / source).read_text())
    (scripts / "versions" / "0002_bad.py").write_text(
        'from alembic import op\nrevision = "0002"\ndown_revision = "0001"\n'
        'def upgrade():\n    op.execute("CREATE TABLE half (x)")\n    op.execute("CREATE TABLE half (x)")\n'
    )
    monkeypatch.setattr(migrate, "scripts", lambda: scripts)
    with pytest.raises(Exception, match="half already exists"):
        migrate.migrate(path)
    assert file_format(path) == 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM sqlite_master").fetchall() == []


def test_of_an_older_format_a_whole_copy_is_kept_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(tmp_path / "data")
    driver.run(pool("p", "192.0.2.0/24"), add("t/a"))
    before = driver.digest()
    driver.close()
    path, scripts = tmp_path / "data" / FILE_NAME, tmp_path / "scripts"
    (scripts / "versions").mkdir(parents=True)
    for source in ("env.py", "versions/0001_initial.py"):
        (scripts / source).write_text((migrate.scripts() / source).read_text())
    (scripts / "versions" / "0002_next.py").write_text(
        'from alembic import op\nrevision = "0002"\ndown_revision = "0001"\n'
        'def upgrade():\n    op.execute("CREATE TABLE new (x INTEGER) STRICT")\n    op.execute("PRAGMA user_version = 2")\n'
    )
    monkeypatch.setattr(migrate, "scripts", lambda: scripts)
    monkeypatch.setattr(migrate, "FORMAT", 2)
    copy = migrate.migrate(path)
    assert copy == path.with_name(f"{FILE_NAME}.format-1")
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert connection.execute("SELECT * FROM new").fetchall() == []
    path.unlink()
    copy.rename(path)
    driver.open()
    assert driver.digest() == before
    driver.close()


def test_what_is_not_ours_is_not_migrated(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(ForeignFile):
        migrate.migrate(path)
