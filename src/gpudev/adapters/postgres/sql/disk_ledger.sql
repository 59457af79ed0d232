-- Held by a connection of its own, and gone with it.
-- name: try_lock
SELECT pg_try_advisory_lock(hashtext('gpu-dev disk reconciliation'));

-- All disks, and whether their holders are cleaned up.
-- name: list_rows
SELECT d.*, r.reservation_id IS NULL OR r.cleaned_at IS NOT NULL AS is_holder_clean
FROM disk_rows d LEFT JOIN reservation_records r ON r.reservation_id = d.reservation_id
ORDER BY d.disk_id;

-- A disk for a volume that only the storage knows; no row: it is known, or its user is not.
-- name: import
WITH imported AS (
    INSERT INTO disks (disk_id, user_id, name, size_gb, created_at, state, ebs_volume_id, zone, is_dirty,
                       is_attached, has_pending_snapshot, snapshot_count, last_snapshot_at, event_count)
    SELECT :id, u.user_id, :name, :size_gb, :created_at, 'available', :volume_id, :zone, true, :is_attached,
           :has_pending_snapshot, :snapshot_count, :last_snapshot_at, 1
    FROM api_users u WHERE u.username = :username
    ON CONFLICT (disk_id) DO NOTHING
    RETURNING disk_id
), due AS (
    INSERT INTO turns (kind, key, asked) SELECT 'disk', disk_id, 1 FROM imported
    ON CONFLICT (kind, key) DO UPDATE SET asked = turns.asked + 1
), told AS (
    INSERT INTO disk_events (disk_id, number, kind, fact, at)
    SELECT disk_id, 1, 'imported', :event_fact, :at FROM imported
)
SELECT disk_id, pg_notify('gpu_dev_turn', 'disk ' || disk_id) FROM imported;

-- Whether there is a user with a name.
-- name: has_user
SELECT EXISTS (SELECT FROM api_users WHERE username = :username);

-- What a reconciliation may write of the state; deletion, operations, last use and listing are not its business.
-- name: sync
WITH changed AS (
    UPDATE disks
    SET state = :state, reservation_id = :reservation_id, has_pending_snapshot = :has_pending_snapshot,
        version = version + 1, event_count = event_count + 1
    WHERE disk_id = :id AND version = :version
    RETURNING disk_id, event_count
), due AS (
    UPDATE turns SET asked = asked + 1
    FROM changed WHERE turns.kind = 'disk' AND turns.key = changed.disk_id AND :is_due::boolean
), told AS (
    INSERT INTO disk_events (disk_id, number, kind, fact, at)
    SELECT disk_id, event_count, 'synced', :event_fact, :at FROM changed
)
SELECT disk_id, pg_notify('gpu_dev_turn', 'disk ' || disk_id) FROM changed;

-- Keep what a reconciliation counted.
-- name: save
INSERT INTO disk_reconciliations (at, reconciled_by, aws_volumes, db_records, synced, updated, created, errors,
                                  orphaned_db_active, orphaned_db_deleted, remarks)
VALUES (:at, :reconciled_by, :aws_volumes, :db_records, :synced, :updated, :created, :errors,
        :orphaned_db_active, :orphaned_db_deleted, :remarks);

-- Delete what older ones counted.
-- name: forget_old
DELETE FROM disk_reconciliations WHERE at < :before;

-- What the last reconciliation counted.
-- name: find_last
SELECT * FROM disk_reconciliations ORDER BY number DESC LIMIT 1;
