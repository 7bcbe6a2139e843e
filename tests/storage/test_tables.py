"""The database enforces what it can, whatever a decision says."""

from __future__ import annotations

import sqlite3

import pytest

from ipamd.storage.tables import ALL
from tests.storage.driver import Driver
from tests.storage.pods import add, pool


@pytest.fixture
def full(driver: Driver) -> Driver:
    driver.run(pool("p", "192.0.2.0/24"), add("t/a"), add("t/b"))
    driver.connection.execute("BEGIN")
    return driver


ADDRESS = "INSERT INTO addresses VALUES ('default', {}, 3, 1, {}, {})"
ATTACHMENT = "INSERT INTO attachments VALUES (99, 2, 1, 'net1', {}, {}, NULL, NULL, NULL, NULL, 0, 0, 1, 1, {}, {}, 0)"


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("INSERT INTO reservations VALUES (99, 1, 't/a', '[]', 1, 0, '')", "UNIQUE .*pool_id, reservations.pod_ref"),
        (
            "INSERT INTO pools SELECT 99, 1, name, 'blue', '[]', '[]', 'lowest', 1, 1, 1, NULL, 0, '[]', 0, 1 FROM pools",
            "UNIQUE .*pools.name",
        ),
        ("UPDATE attachments SET reservation_id = 2", "UNIQUE .*reservation_id, attachments.ifname"),
        (ADDRESS.format("x'c0000201'", 0, 24), "UNIQUE .*addresses.space, addresses.address"),
        (ADDRESS.format("x'c00002'", 0, 24), "ck_addresses_address"),
        (ADDRESS.format("'192.0.2.9'", 0, 24), "cannot store TEXT value in BLOB column"),
        (ADDRESS.format("x'c0000209'", -1, 24), "ck_addresses_position"),
        (ADDRESS.format("x'c0000209'", 0, 33), "ck_addresses_prefix"),
        (ATTACHMENT.format(1, "'c'", 5, 0), "ck_attachments_hold"),
        (ATTACHMENT.format(0, "NULL", "NULL", 0), "ck_attachments_hold"),
        (ATTACHMENT.format(0, "'c'", 5, 0), "ck_attachments_owner"),
        (ATTACHMENT.format(0, "NULL", 5, 1), "ck_attachments_suspect"),
        (ATTACHMENT.format(2, "'c'", "NULL", 0), "ck_attachments"),
        ("UPDATE pools SET strategy = 'best'", "ck_pools_strategy"),
        ("UPDATE pools SET hold_s = -2", "ck_pools_hold_s"),
        ("UPDATE pools SET routes = '['", "ck_pools_routes"),
        ("UPDATE pools SET name = NULL", "NOT NULL .*pools.name"),
        ("UPDATE ranges SET last = x'c0000100'", "ck_ranges_bounds"),
        ("UPDATE ranges SET prefix = 33", "ck_ranges_prefix"),
        ("UPDATE free_spans SET first = x'ffffffff'", "ck_free_spans_bounds"),
        ("UPDATE meta SET id = 2", "ck_meta_single"),
        ("INSERT INTO tokens VALUES ('t', 'n', 'admin', x'00', 1, NULL, NULL, NULL)", "ck_tokens_digest"),
        ("INSERT INTO ops VALUES (NULL, x'00', x'', 1, 1, 0, x'')", "ck_ops_op"),
    ],
)
def test_a_statement_that_breaks_a_rule_fails(full: Driver, statement: str, why: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=why):
        full.connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM reservations",
        "DELETE FROM attachments",
        "DELETE FROM pools",
        "DELETE FROM nodes",
        "INSERT INTO reservations VALUES (99, 77, 't/z', '[]', 1, 0, '')",
        "INSERT INTO free_spans VALUES (77, x'c0000201', x'c0000201')",
        "UPDATE addresses SET attachment_id = 77",
    ],
)
def test_a_row_without_its_parent_fails_at_commit(full: Driver, statement: str) -> None:
    full.connection.execute("INSERT INTO boots VALUES ('n1', 'b', 1, 1)")
    full.connection.execute(statement)
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        full.connection.execute("COMMIT")


def test_every_table_is_strict(driver: Driver) -> None:
    listed = driver.rows("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'")
    strict = {name for name, strict in listed if strict}
    assert strict == {table.name for table in ALL}
