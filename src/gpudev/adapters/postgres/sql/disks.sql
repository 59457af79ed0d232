-- The disk of a user with a name; of the deleted ones the latest.
-- name: find
SELECT * FROM disk_rows
WHERE user_id = :user_id AND name = :name AND (state IN ('soft_deleted', 'purging', 'purged')) = :is_deleted
ORDER BY deleted_at DESC NULLS LAST
LIMIT 1;

-- One disk.
-- name: get
SELECT * FROM disk_rows WHERE disk_id = :id;

-- The disks of a user, or those that can be restored.
-- name: list_of
SELECT * FROM disk_rows
WHERE user_id = :user_id AND state <> 'purged' AND (state IN ('soft_deleted', 'purging')) = :is_deleted
ORDER BY name, created_at;

-- The disks that have a problem.
-- name: list_stuck
SELECT * FROM disk_rows WHERE problem IS NOT NULL AND state <> 'purged' ORDER BY username, name;

-- A new disk, due at once.
-- name: create
WITH created AS (
    INSERT INTO disks (disk_id, user_id, name, size_gb, created_at, state, zone, source_disk_id,
                       source_snapshot_id)
    VALUES (:id, :user_id, :name, :size_gb, :created_at, :state, :zone, :source_disk_id,
            :source_snapshot_id)
    RETURNING disk_id
)
INSERT INTO turns (kind, key, asked) SELECT 'disk', disk_id, 1 FROM created;

-- Request an operation of a disk.
-- name: request
WITH noted AS (
    UPDATE disks SET operation_id = :operation_id, operation_status = 'requested', operation_error = NULL
    WHERE disk_id = :id
    RETURNING disk_id
), due AS (
    UPDATE turns SET asked = asked + 1 FROM noted WHERE turns.kind = 'disk' AND turns.key = noted.disk_id
), requested AS (
    INSERT INTO disk_operations (operation_id, disk_id, kind, size_gb, requested_at)
    SELECT :operation_id, disk_id, :kind, :size_gb, :requested_at FROM noted
), audited AS (
    INSERT INTO audit_entries (username, action, target, address, outcome, detail)
    SELECT entry.* FROM noted, (
    -- include: audit.entries
    ) entry
)
SELECT pgmq.send('disk_operations', jsonb_build_object('disk_id', disk_id)),
       pg_notify('gpu_dev_messages', 'disk_operations')
FROM noted;

-- The row, its operations and what copies need of it, in the snapshot of one statement: an operation that comes in
-- between has bumped the version, so that the write of this turn finds itself stale.
-- name: claim
WITH claimed AS (
-- include: turns.claim
)
SELECT d.*, seen.asked, claimed.defects, waiting.*,
       ARRAY(SELECT c.source_snapshot_id FROM disks c
             WHERE c.source_disk_id = :id AND c.source_snapshot_id IS NOT NULL AND c.state = 'creating')
           AS wanted_snapshots
FROM claimed JOIN turns seen ON seen.kind = :kind AND seen.key = claimed.key
JOIN disk_rows d ON d.disk_id = claimed.key
CROSS JOIN LATERAL (
    SELECT array_agg(operation_id) AS operation_ids, array_agg(kind) AS operation_kinds,
           array_agg(requested_at) AS operation_times, array_agg(size_gb) AS operation_sizes
    FROM (SELECT * FROM disk_operations WHERE disk_id = :id AND status = 'requested' ORDER BY requested_at) o
) waiting;

-- The guarded write of the state, with its event if there is one, and of the name, which only a disk that is there
-- keeps from others: nothing happens unless the row is still the one that
-- was read, and, where a lease is given, still leased by the writer.
-- name: write_state
WITH changed AS (
    UPDATE disks
    SET state = :state, name = :name, reservation_id = :reservation_id, problem = :problem::jsonb,
        last_used = :last_used, released_at = :released_at, deleted_at = :deleted_at, delete_date = :delete_date,
        version = version + 1, event_count = event_count + (:event_kind::text IS NOT NULL)::integer
    WHERE disk_id = :id AND version = :version
      AND (:lease_token::uuid IS NULL OR EXISTS (
          SELECT FROM turns WHERE kind = 'disk' AND key = :id AND lease_token = :lease_token))
    RETURNING disk_id, version, event_count
), due AS (
    UPDATE turns SET next_turn_at = :at::timestamptz, asked = asked + (:lease_token IS NULL)::integer
    FROM changed WHERE turns.kind = 'disk' AND turns.key = changed.disk_id
), told AS (
    INSERT INTO disk_events (disk_id, number, kind, fact, at)
    SELECT disk_id, event_count, :event_kind, :event_fact::jsonb, :at::timestamptz FROM changed
    WHERE :event_kind IS NOT NULL
)
SELECT version, (SELECT pg_notify('gpu_dev_turn', 'disk ' || changed.disk_id) WHERE :lease_token IS NULL)
FROM changed;

-- What was asked for: a new size, or the copy is made.
-- name: write_spec
UPDATE disks
SET size_gb = :size_gb, source_disk_id = :source_disk_id, source_snapshot_id = :source_snapshot_id
WHERE disk_id = :id;

-- Where its data is.
-- name: write_volume
UPDATE disks
SET ebs_volume_id = :volume_id, zone = :zone, is_dirty = :is_dirty, is_attached = :is_attached
WHERE disk_id = :id;

-- Which snapshots were begun and are there.
-- name: write_snapshots
UPDATE disks
SET snapshot_number = :snapshot_number, snapshot_count = :snapshot_count, last_snapshot_at = :last_snapshot_at
WHERE disk_id = :id;

-- What became of operations; the disk shows its last one.
-- name: settle
WITH settled AS (
    UPDATE disk_operations SET status = o.status, error = o.error, finished_at = :at
    FROM unnest(:ids::uuid[], :statuses::text[], :errors::jsonb[]) AS o (operation_id, status, error)
    WHERE disk_operations.operation_id = o.operation_id
    RETURNING o.operation_id, o.status, o.error
)
UPDATE disks SET operation_status = settled.status, operation_error = settled.error
FROM settled WHERE disks.disk_id = :id AND disks.operation_id = settled.operation_id;

-- Its reservation can have its server now.
-- name: wake_reservation
SELECT pg_notify('gpu_dev_turn', 'reservation ' || :reservation_id::uuid);

-- Who waits for it may go on.
-- name: wake_admission
SELECT pg_notify('gpu_dev_admission', r.gpu_type) FROM reservation_records r
WHERE r.disk_id = :id AND r.status IN ('pending', 'queued');

-- Note the snapshots that a disk has.
-- name: keep_snapshots
INSERT INTO snapshots (snapshot_id, disk_id, ebs_volume_id, started_at, size_gb)
SELECT s.snapshot_id, :id, s.ebs_volume_id, s.started_at, s.size_gb
FROM unnest(:snapshot_ids::text[], :volume_ids::text[], :times::timestamptz[], :sizes::integer[])
    AS s (snapshot_id, ebs_volume_id, started_at, size_gb)
ON CONFLICT (snapshot_id) DO UPDATE SET deleted_at = NULL WHERE snapshots.deleted_at IS NOT NULL;

-- Note that all others are gone.
-- name: forget_snapshots
UPDATE snapshots SET deleted_at = :now
WHERE disk_id = :id AND deleted_at IS NULL AND snapshot_id <> ALL (:snapshot_ids::text[]);

-- Copies that waited for a snapshot of this disk are told which one it is.
-- name: give_to_copies
WITH given AS (
    UPDATE disks SET source_snapshot_id = :snapshot_id, version = version + 1
    WHERE source_disk_id = :id AND source_snapshot_id IS NULL AND state = 'creating'
    RETURNING disk_id
), due AS (
    UPDATE turns SET asked = asked + 1 FROM given WHERE turns.kind = 'disk' AND turns.key = given.disk_id
)
SELECT pg_notify('gpu_dev_turn', 'disk ' || disk_id) FROM given;

-- The snapshots of a disk, the newest first.
-- name: list_snapshots
SELECT snapshot_id, ebs_volume_id, started_at, size_gb, used_bytes FROM snapshots
WHERE disk_id = :id AND deleted_at IS NULL
ORDER BY started_at DESC;

-- The listing of the newest snapshot of a disk.
-- name: find_content
SELECT snapshot_id, started_at, content, content_s3 FROM snapshots
WHERE disk_id = :id AND deleted_at IS NULL
ORDER BY started_at DESC
LIMIT 1;

-- Keep the listing of a snapshot, or its address.
-- name: keep_listing
WITH kept AS (
    UPDATE snapshots SET content = :content, content_s3 = :content_s3, used_bytes = :used_bytes
    WHERE snapshot_id = :snapshot_id
    RETURNING disk_id
)
UPDATE disks SET latest_snapshot_content_s3 = :content_s3 FROM kept WHERE disks.disk_id = kept.disk_id;

-- Keep what was on the last server until there is a snapshot of it.
-- name: keep_home_listing
UPDATE disks SET home_listing = :listing, home_used_bytes = :used_bytes WHERE disk_id = :id;

-- Take that listing, to put it with the snapshot.
-- name: take_home_listing
WITH kept AS (
    SELECT disk_id, home_listing, home_used_bytes FROM disks
    WHERE disk_id = :id AND home_listing IS NOT NULL
    FOR UPDATE
), taken AS (
    UPDATE disks SET home_listing = NULL, home_used_bytes = NULL FROM kept WHERE disks.disk_id = kept.disk_id
)
SELECT home_listing, home_used_bytes FROM kept;

-- What happened to a disk.
-- name: list_events
SELECT number, kind, fact, at FROM disk_events WHERE disk_id = :id ORDER BY number;

-- An operation of a disk, of one user or of anybody.
-- name: get_operation
SELECT o.operation_id, o.disk_id, d.name, o.kind, o.status, o.error, o.requested_at, o.finished_at,
       d.is_deleted, d.delete_date, d.version AS disk_version
FROM disk_operations o JOIN disks d USING (disk_id)
WHERE o.operation_id = :id AND (:user_id::integer IS NULL OR d.user_id = :user_id);
