-- One admission at a time for a type; the lock goes with the transaction.
-- name: lock
SELECT pg_advisory_xact_lock(hashtext('gpu-dev admission'), hashtext($1));

-- name: read
SELECT * FROM reservation_rows
WHERE gpu_type = $1 AND cleaned_at IS NULL AND (node_name IS NOT NULL OR status IN ('pending', 'queued'));

-- name: list_port_slots
SELECT port_slot FROM reservations WHERE port_slot IS NOT NULL AND cleaned_at IS NULL;

-- name: set_queue_places
WITH placed AS (
    UPDATE reservations
    SET queue_position = p.position, estimated_start_at = p.estimated_start_at, reason = p.reason,
        detail = p.detail, last_queue_update = $6
    FROM unnest($1::uuid[], $2::integer[], $3::timestamptz[], $4::text[], $5::text[])
        AS p (reservation_id, position, estimated_start_at, reason, detail)
    WHERE reservations.reservation_id = p.reservation_id AND status = 'queued'
    RETURNING reservations.reservation_id
)
SELECT pg_notify('gpu_dev_event', reservation_id::text) FROM placed;

-- name: wake
SELECT pg_notify('gpu_dev_admission', $1);

-- name: list_waiting_types
SELECT DISTINCT gpu_type FROM reservations
WHERE cleaned_at IS NULL AND status IN ('pending', 'queued')
ORDER BY gpu_type;

-- Requests whose disk an earlier reservation has not given back, or that is still being made.
-- name: list_disk_busy
SELECT r.reservation_id
FROM reservations r JOIN disks d USING (disk_id)
WHERE r.gpu_type = $1 AND r.status IN ('pending', 'queued') AND d.state <> 'available';

-- name: list_disk_zones
SELECT r.reservation_id, d.zone
FROM reservations r JOIN disks d USING (disk_id)
WHERE r.gpu_type = $1 AND r.status IN ('pending', 'queued') AND d.zone <> '';

-- name: take_disk
WITH taken AS (
    UPDATE disks SET state = 'attaching', reservation_id = $2, version = version + 1, next_turn_at = $3
    WHERE disk_id = $1 AND state = 'available'
    RETURNING disk_id
)
SELECT true, pg_notify('gpu_dev_disk', disk_id::text) FROM taken;
