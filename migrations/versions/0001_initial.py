"""The first format of the state database.

Frozen: plain SQL that depends on no other code, so that it makes the same file for ever.
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE cluster (
    id INTEGER NOT NULL,
    cluster_id TEXT NOT NULL,
    founded_ms INTEGER NOT NULL,
    level INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    CONSTRAINT pk_cluster PRIMARY KEY (id),
    CONSTRAINT ck_cluster_single CHECK (id = 1),
    CONSTRAINT ck_cluster_level CHECK (level >= 1)
) STRICT;
CREATE TABLE cooling (
    space TEXT NOT NULL,
    address BLOB NOT NULL,
    pool_id INTEGER NOT NULL,
    pod_ref TEXT NOT NULL,
    ifname TEXT NOT NULL,
    freed_log_ms INTEGER NOT NULL,
    hard_until_log_ms INTEGER NOT NULL,
    until_log_ms INTEGER NOT NULL,
    CONSTRAINT pk_cooling PRIMARY KEY (space, address),
    CONSTRAINT ck_cooling_address CHECK (length(address) IN (4, 16))
) WITHOUT ROWID, STRICT;
CREATE TABLE events (
    id INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    "by" TEXT NOT NULL,
    request_id TEXT NOT NULL,
    space TEXT,
    pool TEXT,
    pod_ref TEXT,
    ifname TEXT,
    address BLOB,
    node TEXT,
    detail TEXT NOT NULL,
    begins INTEGER NOT NULL,
    CONSTRAINT pk_events PRIMARY KEY (id),
    CONSTRAINT ck_events_address CHECK (length(address) IN (4, 16)),
    CONSTRAINT ck_events_begins CHECK (begins IN (0, 1))
) STRICT;
CREATE TABLE restored (
    id INTEGER NOT NULL,
    log_index INTEGER NOT NULL,
    log_ms INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    backup_ms INTEGER NOT NULL,
    cluster_id TEXT NOT NULL,
    CONSTRAINT pk_restored PRIMARY KEY (id),
    CONSTRAINT ck_restored_single CHECK (id = 1)
) STRICT;
CREATE TABLE disputes (
    space TEXT NOT NULL,
    address BLOB NOT NULL,
    node TEXT NOT NULL,
    container_id TEXT NOT NULL,
    ifname TEXT NOT NULL,
    pod_ref TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    CONSTRAINT pk_disputes PRIMARY KEY (space, address),
    CONSTRAINT ck_disputes_address CHECK (length(address) IN (4, 16))
) WITHOUT ROWID, STRICT;
CREATE TABLE unconfirmed (
    pool_id INTEGER NOT NULL,
    CONSTRAINT pk_unconfirmed PRIMARY KEY (pool_id),
    CONSTRAINT fk_unconfirmed_pool_id
        FOREIGN KEY(pool_id) REFERENCES pools (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE TABLE members (
    name TEXT NOT NULL,
    member_id TEXT NOT NULL,
    raft TEXT NOT NULL,
    api TEXT NOT NULL,
    voter INTEGER NOT NULL,
    level INTEGER NOT NULL,
    CONSTRAINT pk_members PRIMARY KEY (name),
    CONSTRAINT ck_members_voter CHECK (voter IN (0, 1)),
    CONSTRAINT ck_members_level CHECK (level >= 1)
) STRICT;
CREATE TABLE meta (
    id INTEGER NOT NULL,
    applied_index INTEGER NOT NULL,
    applied_term INTEGER NOT NULL,
    log_ms INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    last_event INTEGER NOT NULL,
    CONSTRAINT pk_meta PRIMARY KEY (id),
    CONSTRAINT ck_meta_single CHECK (id = 1)
) STRICT;
CREATE TABLE mass_silence (
    id INTEGER NOT NULL,
    stands INTEGER NOT NULL,
    since_log_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    CONSTRAINT pk_mass_silence PRIMARY KEY (id),
    CONSTRAINT ck_mass_silence_single CHECK (id = 1),
    CONSTRAINT ck_mass_silence_stands CHECK (stands IN (0, 1))
) STRICT;
CREATE TABLE nodes (
    name TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    newest_boot INTEGER NOT NULL,
    reported_log_ms INTEGER,
    reported_ms INTEGER,
    lost_log_ms INTEGER,
    silent_since_ms INTEGER,
    back_log_ms INTEGER NOT NULL,
    clash INTEGER NOT NULL,
    spooled INTEGER NOT NULL,
    conflicts INTEGER NOT NULL,
    CONSTRAINT pk_nodes PRIMARY KEY (name),
    CONSTRAINT ck_nodes_clash CHECK (clash IN (0, 1)),
    CONSTRAINT ck_nodes_lost CHECK ((lost_log_ms IS NULL) = (silent_since_ms IS NULL))
) WITHOUT ROWID, STRICT;
CREATE TABLE ops (
    id INTEGER NOT NULL,
    op BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    log_index INTEGER NOT NULL,
    expires_log_ms INTEGER NOT NULL,
    keyed INTEGER NOT NULL,
    outcome BLOB NOT NULL,
    CONSTRAINT pk_ops PRIMARY KEY (id),
    CONSTRAINT uq_ops_op UNIQUE (op),
    CONSTRAINT ck_ops_op CHECK (length(op) = 16),
    CONSTRAINT ck_ops_keyed CHECK (keyed IN (0, 1))
) STRICT;
CREATE TABLE pools (
    id INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    name TEXT NOT NULL,
    space TEXT NOT NULL,
    routes TEXT NOT NULL,
    dns TEXT NOT NULL,
    strategy TEXT NOT NULL,
    cooldown_s INTEGER,
    cooldown_min_s INTEGER NOT NULL,
    hold_s INTEGER NOT NULL,
    reclaim TEXT,
    allow_overlap INTEGER NOT NULL,
    labels TEXT NOT NULL,
    inline INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    CONSTRAINT pk_pools PRIMARY KEY (id),
    CONSTRAINT uq_pools_name UNIQUE (name),
    CONSTRAINT ck_pools_routes CHECK (json_valid(routes)),
    CONSTRAINT ck_pools_dns CHECK (json_valid(dns)),
    CONSTRAINT ck_pools_labels CHECK (json_valid(labels)),
    CONSTRAINT ck_pools_strategy CHECK (strategy IN ('lowest', 'round-robin', 'random')),
    CONSTRAINT ck_pools_cooldown_s CHECK (cooldown_s >= 0),
    CONSTRAINT ck_pools_cooldown_min_s CHECK (cooldown_min_s >= 0),
    CONSTRAINT ck_pools_hold_s CHECK (hold_s >= -1),
    CONSTRAINT ck_pools_allow_overlap CHECK (allow_overlap IN (0, 1)),
    CONSTRAINT ck_pools_inline CHECK (inline IN (0, 1))
) STRICT;
CREATE TABLE quarantine (
    space TEXT NOT NULL,
    address BLOB NOT NULL,
    until_log_ms INTEGER,
    note TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    "by" TEXT NOT NULL,
    CONSTRAINT pk_quarantine PRIMARY KEY (space, address),
    CONSTRAINT ck_quarantine_address CHECK (length(address) IN (4, 16))
) WITHOUT ROWID, STRICT;
CREATE TABLE settings (
    id INTEGER NOT NULL,
    inline_pools INTEGER NOT NULL,
    cooldown_s INTEGER NOT NULL,
    reclaim TEXT NOT NULL,
    node_lost_s INTEGER NOT NULL,
    evidence_grace_s INTEGER NOT NULL,
    tombstone_s INTEGER NOT NULL,
    events_days INTEGER NOT NULL,
    events_max INTEGER NOT NULL,
    CONSTRAINT pk_settings PRIMARY KEY (id),
    CONSTRAINT ck_settings_single CHECK (id = 1),
    CONSTRAINT ck_settings_inline_pools CHECK (inline_pools IN (0, 1))
) STRICT;
CREATE TABLE staged_parts (
    import_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    until_log_ms INTEGER NOT NULL,
    findings BLOB NOT NULL,
    CONSTRAINT pk_staged_parts PRIMARY KEY (import_id, number)
) STRICT;
CREATE TABLE tokens (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    digest BLOB NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    node TEXT,
    used_ms INTEGER,
    CONSTRAINT pk_tokens PRIMARY KEY (id),
    CONSTRAINT uq_tokens_digest UNIQUE (digest),
    CONSTRAINT ck_tokens_digest CHECK (length(digest) = 32)
) WITHOUT ROWID, STRICT;
CREATE TABLE tombstones (
    node TEXT NOT NULL,
    cni_network TEXT NOT NULL,
    container_id TEXT NOT NULL,
    ifname TEXT NOT NULL,
    start_boot INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    until_log_ms INTEGER NOT NULL,
    CONSTRAINT pk_tombstones PRIMARY KEY (node, cni_network, container_id, ifname)
) WITHOUT ROWID, STRICT;
CREATE TABLE boots (
    node TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    ord INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    CONSTRAINT pk_boots PRIMARY KEY (node, boot_id),
    CONSTRAINT uq_boots_node_ord UNIQUE (node, ord),
    CONSTRAINT ck_boots_ord CHECK (ord >= 1),
    CONSTRAINT fk_boots_node FOREIGN KEY(node) REFERENCES nodes (name) DEFERRABLE INITIALLY DEFERRED
) WITHOUT ROWID, STRICT;
CREATE TABLE cursors (
    pool_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    address BLOB NOT NULL,
    CONSTRAINT pk_cursors PRIMARY KEY (pool_id, position),
    CONSTRAINT ck_cursors_address CHECK (length(address) IN (4, 16)),
    CONSTRAINT fk_cursors_pool_id
        FOREIGN KEY(pool_id) REFERENCES pools (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
) WITHOUT ROWID, STRICT;
CREATE TABLE generation_floors (
    pool_id INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    CONSTRAINT pk_generation_floors PRIMARY KEY (pool_id),
    CONSTRAINT fk_generation_floors_pool_id
        FOREIGN KEY(pool_id) REFERENCES pools (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE TABLE ranges (
    id INTEGER NOT NULL,
    pool_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    subnet BLOB NOT NULL,
    prefix INTEGER NOT NULL,
    first BLOB NOT NULL,
    last BLOB NOT NULL,
    range_start BLOB,
    range_end BLOB,
    gateway BLOB,
    CONSTRAINT pk_ranges PRIMARY KEY (id),
    CONSTRAINT uq_ranges_pool_id_position_ord UNIQUE (pool_id, position, ord),
    CONSTRAINT ck_ranges_subnet CHECK (length(subnet) IN (4, 16)),
    CONSTRAINT ck_ranges_prefix CHECK (prefix BETWEEN 0 AND 8 * length(subnet)),
    CONSTRAINT ck_ranges_bounds
        CHECK (length(first) = length(subnet) AND length(last) = length(subnet) AND first <= last),
    CONSTRAINT fk_ranges_pool_id
        FOREIGN KEY(pool_id) REFERENCES pools (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE TABLE reservations (
    id INTEGER NOT NULL,
    pool_id INTEGER NOT NULL,
    pod_ref TEXT NOT NULL,
    pod_uids TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    note TEXT NOT NULL,
    CONSTRAINT pk_reservations PRIMARY KEY (id),
    CONSTRAINT uq_reservations_pool_id_pod_ref UNIQUE (pool_id, pod_ref),
    CONSTRAINT ck_reservations_pinned CHECK (pinned IN (0, 1)),
    CONSTRAINT fk_reservations_pool_id
        FOREIGN KEY(pool_id) REFERENCES pools (id) DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE TABLE attachments (
    id INTEGER NOT NULL,
    reservation_id INTEGER NOT NULL,
    pool_id INTEGER NOT NULL,
    ifname TEXT NOT NULL,
    bound INTEGER NOT NULL,
    container_id TEXT,
    node TEXT,
    cni_network TEXT,
    netns TEXT,
    netns_inode INTEGER,
    start_boot INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    hold_until_log_ms INTEGER,
    suspect INTEGER NOT NULL,
    bound_index INTEGER NOT NULL,
    CONSTRAINT pk_attachments PRIMARY KEY (id),
    CONSTRAINT uq_attachments_reservation_id_ifname UNIQUE (reservation_id, ifname),
    CONSTRAINT ck_attachments_bound CHECK (bound IN (0, 1)),
    CONSTRAINT ck_attachments_suspect CHECK (suspect IN (0, bound)),
    CONSTRAINT ck_attachments_hold CHECK (bound = (hold_until_log_ms IS NULL)),
    CONSTRAINT ck_attachments_owner
        CHECK (bound OR coalesce(container_id, node, cni_network, netns, netns_inode) IS NULL),
    CONSTRAINT fk_attachments_reservation_id
        FOREIGN KEY(reservation_id) REFERENCES reservations (id) DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE TABLE sightings (
    attachment_id INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    alive INTEGER,
    gone_log_ms INTEGER,
    gone_index INTEGER NOT NULL,
    contested INTEGER NOT NULL,
    CONSTRAINT pk_sightings PRIMARY KEY (attachment_id),
    CONSTRAINT ck_sightings_alive CHECK (alive IN (0, 1)),
    CONSTRAINT ck_sightings_contested CHECK (contested IN (0, 1)),
    CONSTRAINT ck_sightings_gone CHECK (gone_log_ms IS NULL OR alive IS 0),
    CONSTRAINT fk_sightings_attachment_id
        FOREIGN KEY(attachment_id) REFERENCES attachments (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE TABLE excludes (
    range_id INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    first BLOB NOT NULL,
    last BLOB NOT NULL,
    CONSTRAINT pk_excludes PRIMARY KEY (range_id, ord),
    CONSTRAINT ck_excludes_bounds CHECK (length(first) = length(last)),
    CONSTRAINT fk_excludes_range_id
        FOREIGN KEY(range_id) REFERENCES ranges (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
) WITHOUT ROWID, STRICT;
CREATE TABLE free_spans (
    range_id INTEGER NOT NULL,
    last BLOB NOT NULL,
    first BLOB NOT NULL,
    CONSTRAINT pk_free_spans PRIMARY KEY (range_id, last),
    CONSTRAINT ck_free_spans_bounds CHECK (length(first) = length(last) AND first <= last),
    CONSTRAINT fk_free_spans_range_id
        FOREIGN KEY(range_id) REFERENCES ranges (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
) WITHOUT ROWID, STRICT;
CREATE TABLE addresses (
    space TEXT NOT NULL,
    address BLOB NOT NULL,
    attachment_id INTEGER NOT NULL,
    pool_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    prefix INTEGER NOT NULL,
    CONSTRAINT pk_addresses PRIMARY KEY (space, address),
    CONSTRAINT ck_addresses_address CHECK (length(address) IN (4, 16)),
    CONSTRAINT ck_addresses_position CHECK (position >= 0),
    CONSTRAINT ck_addresses_prefix CHECK (prefix BETWEEN 0 AND 8 * length(address)),
    CONSTRAINT fk_addresses_attachment_id
        FOREIGN KEY(attachment_id) REFERENCES attachments (id) DEFERRABLE INITIALLY DEFERRED
) WITHOUT ROWID, STRICT
"""

INDEXES = (
    "CREATE INDEX ix_cooling_pool_id_pod_ref_ifname ON cooling (pool_id, pod_ref, ifname)",
    "CREATE INDEX ix_cooling_space_freed_log_ms ON cooling (space, freed_log_ms)",
    "CREATE INDEX ix_cooling_until_log_ms ON cooling (until_log_ms)",
    "CREATE INDEX ix_events_space_address ON events (space, address) WHERE address IS NOT NULL",
    "CREATE INDEX ix_ops_expires_log_ms ON ops (expires_log_ms)",
    "CREATE INDEX ix_ops_keyed ON ops (id) WHERE keyed = 1",
    "CREATE INDEX ix_nodes_lost_log_ms ON nodes (lost_log_ms) WHERE lost_log_ms IS NOT NULL",
    "CREATE INDEX ix_pools_space_name ON pools (space, name)",
    "CREATE INDEX ix_quarantine_until_log_ms ON quarantine (until_log_ms) WHERE until_log_ms IS NOT NULL",
    "CREATE INDEX ix_ranges_subnet_prefix ON ranges (subnet, prefix)",
    "CREATE INDEX ix_staged_parts_until_log_ms ON staged_parts (until_log_ms)",
    "CREATE INDEX ix_tokens_expires_ms ON tokens (expires_ms) WHERE expires_ms IS NOT NULL",
    "CREATE INDEX ix_tokens_node ON tokens (node) WHERE node IS NOT NULL",
    "CREATE INDEX ix_tombstones_until_log_ms ON tombstones (until_log_ms)",
    "CREATE INDEX ix_attachments_container_id ON attachments (container_id) WHERE container_id IS NOT NULL",
    "CREATE INDEX ix_attachments_held ON attachments (pool_id, reservation_id) WHERE bound = 0",
    "CREATE INDEX ix_attachments_hold_until_log_ms ON attachments (hold_until_log_ms) WHERE hold_until_log_ms >= 0",
    "CREATE INDEX ix_attachments_node ON attachments (node) WHERE node IS NOT NULL",
    "CREATE INDEX ix_attachments_suspect ON attachments (pool_id, reservation_id) WHERE suspect = 1",
    "CREATE INDEX ix_attachments_unclaimed ON attachments (id) WHERE bound = 1 AND node IS NULL",
    "CREATE INDEX ix_addresses_attachment_id_position ON addresses (attachment_id, position)",
)


def upgrade() -> None:
    for statement in (*TABLES.split(";"), *INDEXES):
        op.execute(statement)
    # The log begins with an empty entry: index 1, term 0.
    op.execute("INSERT INTO meta VALUES (1, 1, 0, 0, 0, 0, 0)")
    op.execute("PRAGMA application_id = 1768972653")  # "ipam"
    op.execute("PRAGMA user_version = 1")
