-- A disk: a named home that outlives its reservations. One row owns its state.
CREATE TABLE disks (
    disk_id             uuid PRIMARY KEY,
    user_id             integer NOT NULL REFERENCES api_users,
    name                text NOT NULL CONSTRAINT disks_name_form CHECK (name ~ '^[A-Za-z0-9_-]{1,50}$'),
    size_gb             integer NOT NULL CHECK (size_gb > 0),
    created_at          timestamptz NOT NULL,

    state               text NOT NULL CONSTRAINT disks_state CHECK (state IN (
                            'creating', 'available', 'attaching', 'in_use', 'releasing', 'snapshotting',
                            'soft_deleted', 'purging', 'purged')),
    reservation_id      uuid REFERENCES reservations,
    ebs_volume_id       text,
    zone                text NOT NULL DEFAULT '',
    source_disk_id      uuid REFERENCES disks,
    source_snapshot_id  text,
    is_dirty            boolean NOT NULL DEFAULT false,
    snapshot_number     integer NOT NULL DEFAULT 0,
    snapshot_count      integer NOT NULL DEFAULT 0,
    last_snapshot_at    timestamptz,
    last_used           timestamptz,
    released_at         timestamptz,
    deleted_at          timestamptz,
    delete_date         timestamptz,
    problem             text NOT NULL DEFAULT '',
    version             integer NOT NULL DEFAULT 1,
    event_count         integer NOT NULL DEFAULT 0,

    -- The operation that was requested last.
    operation_id        uuid,
    operation_status    text NOT NULL DEFAULT '',
    operation_error     text NOT NULL DEFAULT '',

    -- What the last reconciliation saw.
    is_attached           boolean NOT NULL DEFAULT false,
    has_pending_snapshot  boolean NOT NULL DEFAULT false,

    -- What is on the newest snapshot, where listings are kept outside the database.
    latest_snapshot_content_s3  text,

    -- Whose turn it is, and when the next one comes.
    lease_token         uuid,
    lease_until         timestamptz,
    next_turn_at        timestamptz,
    defects             integer NOT NULL DEFAULT 0,

    -- The state in the words of the API.
    in_use         boolean NOT NULL GENERATED ALWAYS AS (
                       is_attached OR state IN ('attaching', 'in_use', 'releasing')) STORED,
    is_backing_up  boolean NOT NULL GENERATED ALWAYS AS (
                       has_pending_snapshot OR state = 'snapshotting') STORED,
    is_deleted     boolean NOT NULL GENERATED ALWAYS AS (
                       state IN ('soft_deleted', 'purging', 'purged')) STORED,

    CONSTRAINT disks_holder CHECK (
        reservation_id IS NOT NULL OR state NOT IN ('attaching', 'in_use', 'releasing')),
    CONSTRAINT disks_delete_date CHECK (
        (delete_date IS NOT NULL) = (state IN ('soft_deleted', 'purging', 'purged')))
);
CREATE UNIQUE INDEX disks_name ON disks (user_id, name)
    WHERE state NOT IN ('soft_deleted', 'purging', 'purged');
CREATE UNIQUE INDEX disks_of_reservation ON disks (reservation_id) WHERE reservation_id IS NOT NULL;
CREATE INDEX disks_due ON disks (next_turn_at) WHERE next_turn_at IS NOT NULL;
CREATE INDEX disks_copies ON disks (source_disk_id) WHERE source_disk_id IS NOT NULL;

CREATE TABLE snapshots (
    snapshot_id    text PRIMARY KEY,
    disk_id        uuid NOT NULL REFERENCES disks,
    ebs_volume_id  text NOT NULL,
    started_at     timestamptz NOT NULL,
    size_gb        integer NOT NULL,
    used_bytes     bigint,
    content        text,
    content_s3     text,
    deleted_at     timestamptz
);
CREATE INDEX snapshots_of_disk ON snapshots (disk_id, started_at DESC) WHERE deleted_at IS NULL;
COMMENT ON COLUMN snapshots.content IS 'The file listing, where listings are kept in the database';

CREATE TABLE disk_operations (
    operation_id  uuid PRIMARY KEY,
    disk_id       uuid NOT NULL REFERENCES disks,
    kind          text NOT NULL CONSTRAINT disk_operations_kind CHECK (kind IN (
                      'create', 'clone', 'grow', 'rename', 'delete', 'restore')),
    status        text NOT NULL DEFAULT 'requested' CONSTRAINT disk_operations_status CHECK (
                      status IN ('requested', 'done', 'failed')),
    error         text NOT NULL DEFAULT '',
    size_gb       integer,
    requested_at  timestamptz NOT NULL,
    finished_at   timestamptz
);
CREATE INDEX disk_operations_waiting ON disk_operations (disk_id) WHERE status = 'requested';

CREATE TABLE disk_events (
    disk_id  uuid NOT NULL REFERENCES disks,
    number   integer NOT NULL,
    kind     text NOT NULL CONSTRAINT disk_events_kind CHECK (kind IN (
                 'created', 'attached', 'released', 'snapshot', 'moved', 'grown', 'renamed', 'deleted',
                 'restored', 'purged', 'imported', 'synced', 'problem')),
    message  text NOT NULL,
    at       timestamptz NOT NULL,
    PRIMARY KEY (disk_id, number)
);

CREATE TABLE disk_reconciliations (
    number               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at                   timestamptz NOT NULL,
    reconciled_by        text NOT NULL,
    aws_volumes          integer NOT NULL,
    db_records           integer NOT NULL,
    synced               integer NOT NULL,
    updated              integer NOT NULL,
    created              integer NOT NULL,
    errors               integer NOT NULL,
    orphaned_db_active   integer NOT NULL,
    orphaned_db_deleted  integer NOT NULL,
    remarks              text[] NOT NULL
);
COMMENT ON TABLE disk_reconciliations IS 'What each reconciliation with the storage counted and remarked';

SELECT pgmq.create('disk_operations'), pgmq.create('disk_operations_dead');

ALTER TABLE reservations
    ADD COLUMN disk_id uuid REFERENCES disks,
    ADD COLUMN disk_name text NOT NULL DEFAULT '',
    ADD COLUMN ebs_volume_id text,
    DROP CONSTRAINT reservations_reason,
    ADD CONSTRAINT reservations_reason CHECK (reason IN (
        'waiting_for_capacity', 'waiting_in_line', 'no_nodes', 'disk_busy', 'placement_lost', 'time_is_up',
        'went_idle', 'cancelled_by_user', 'cancelled_by_admin', 'start_failed', 'start_timed_out',
        'start_stalled', 'queue_stalled', 'queued_too_long', 'server_failed', 'image_unavailable', 'pod_deleted',
        'node_lost', 'evicted', 'out_of_memory', 'disk_failed', 'internal_error'));
-- However many ask for a disk at once, one has it.
CREATE UNIQUE INDEX reservations_live_disk ON reservations (disk_id)
    WHERE status IN ('pending', 'queued', 'preparing', 'active');

CREATE OR REPLACE VIEW reservation_rows AS
SELECT r.reservation_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count, r.duration, r.created_at,
       r.status, r.reason, r.detail, r.env_vars, r.ssh_public_keys, r.cli_version, r.node_name, r.node_ip,
       r.node_port, r.ssh_host_keys, r.queue_position, r.estimated_start_at, r.last_queue_update, r.placed_at,
       r.launched_at, r.expires_at, r.reservation_ended, r.cancelled_at, r.cleaned_at, r.last_updated,
       r.version, r.github_user, r.warning, r.node_count, r.other_members, r.warned_minutes, r.extension_error,
       r.oom_count, r.last_oom_at, r.told_notices, r.progress, r.progress_at, r.stale_since, r.driven_at,
       r.kept_until, r.idle_warned_at, r.idle_warning, r.usage_at, r.idle_since, r.idle_words, r.image, r.port_slot,
       r.disk_id, r.disk_name, r.ebs_volume_id
FROM reservations r JOIN api_users u USING (user_id);

CREATE OR REPLACE VIEW listed_rows AS
SELECT reservation_id, user_id, username, name, gpu_type, gpu_count, duration, created_at, status, reason, detail,
       cli_version, node_name, node_ip, node_port, ssh_host_keys, queue_position, estimated_start_at, launched_at,
       expires_at, reservation_ended, last_updated, version, github_user, warning, node_count, other_members,
       warned_minutes, extension_error, oom_count, last_oom_at, kept_until, idle_warned_at, idle_warning, disk_id,
       disk_name, ebs_volume_id
FROM reservation_rows;

-- A disk as the rules see it, with the live reservation that asks for it.
CREATE VIEW disk_rows AS
SELECT d.disk_id, d.user_id, u.username, d.name, d.size_gb, d.created_at, d.state, d.reservation_id,
       d.ebs_volume_id, d.zone, d.source_disk_id, d.source_snapshot_id, d.is_dirty, d.snapshot_number,
       d.snapshot_count, d.last_snapshot_at, d.last_used, d.released_at, d.deleted_at, d.delete_date, d.problem,
       d.is_attached, d.has_pending_snapshot, d.operation_id, d.operation_status, d.operation_error, d.version,
       d.latest_snapshot_content_s3,
       (SELECT r.reservation_id FROM reservations r
        WHERE r.disk_id = d.disk_id AND r.status IN ('pending', 'queued', 'preparing', 'active')) AS named_by
FROM disks d JOIN api_users u USING (user_id);
