-- One admission at a time for a type; the lock goes with the transaction.
-- name: lock
SELECT pg_advisory_xact_lock(hashtext('gpu-dev admission'), hashtext(:gpu_type));

-- The reservations of a type that wait or hold a place.
-- name: read
SELECT * FROM reservation_rows
WHERE gpu_type = :gpu_type AND cleaned_at IS NULL AND (member_node IS NOT NULL OR status IN ('pending', 'queued'));

-- The ready addresses that reservations hold.
-- name: list_port_slots
SELECT port_slot FROM reservation_records WHERE port_slot IS NOT NULL AND cleaned_at IS NULL;

-- Write the places in the queue. The first promise of each is kept, to see later how good it was; a booking is none.
-- name: set_queue_places
WITH placed AS (
    UPDATE reservation_records
    SET queue_position = p.position, estimated_start_at = p.estimated_start_at, reason = p.reason,
        detail = p.detail, planned_nodes = string_to_array(p.planned_nodes, ','), last_queue_update = :now,
        likely_from = p.likely_from, likely_to = p.likely_to
    FROM unnest(:ids::uuid[], :positions::integer[], :estimated_starts::timestamptz[], :reasons::text[],
                :details::jsonb[], :planned_nodes::text[], :likely_from::timestamptz[],
                :likely_at::timestamptz[], :likely_to::timestamptz[])
        AS p (reservation_id, position, estimated_start_at, reason, detail, planned_nodes,
              likely_from, likely_at, likely_to)
    WHERE reservation_records.reservation_id = p.reservation_id AND status = 'queued'
    RETURNING reservation_records.*, p.likely_at
), kept AS (
    INSERT INTO forecasts (reservation_id, gpu_type, slots, asked_at, promised_at, likely_from, likely_at, likely_to,
                           length)
    SELECT reservation_id, gpu_type, greatest(1, gpu_count), coalesce(requested_at, created_at), estimated_start_at, likely_from, likely_at,
           likely_to, duration
    FROM placed WHERE estimated_start_at IS NOT NULL AND start_at IS NULL
    ON CONFLICT (reservation_id) DO NOTHING
)
SELECT pg_notify('gpu_dev_event', reservation_id::text) FROM placed;

-- Wake up admission for a type.
-- name: wake
SELECT pg_notify('gpu_dev_admission', :gpu_type);

-- The types that admission has something to do for: requests that wait, nodes that drain.
-- name: list_waiting_types
SELECT gpu_type FROM reservation_records WHERE cleaned_at IS NULL AND status IN ('pending', 'queued')
UNION
SELECT gpu_type FROM drains WHERE emptied_at IS NULL
ORDER BY gpu_type;

-- Requests whose disk an earlier reservation has not given back, or that is still being made. One that was started
-- again also waits for a new request that has named its disk: see the index `reservations_live_disk`.
-- name: list_disk_busy
SELECT r.reservation_id
FROM reservation_records r JOIN disks d USING (disk_id)
WHERE r.gpu_type = :gpu_type AND r.status IN ('pending', 'queued')
  AND (d.state <> 'available' OR (r.used <> interval '0' AND EXISTS (
      SELECT FROM reservation_records o
      WHERE o.disk_id = r.disk_id AND (o.status IN ('preparing', 'active')
          OR (o.status IN ('pending', 'queued') AND o.used = interval '0')))));

-- The zones in which the disks of waiting requests are.
-- name: list_disk_zones
SELECT r.reservation_id, d.zone
FROM reservation_records r JOIN disks d USING (disk_id)
WHERE r.gpu_type = :gpu_type AND r.status IN ('pending', 'queued') AND d.zone <> '';

-- Claim a free disk for a reservation that is placed now.
-- name: take_disk
WITH taken AS (
    UPDATE disks SET state = 'attaching', reservation_id = :reservation_id, version = version + 1,
        home_listing = NULL, home_used_bytes = NULL
    WHERE disk_id = :disk_id AND state = 'available'
    RETURNING disk_id
), due AS (
    UPDATE turns SET asked = asked + 1 FROM taken WHERE turns.kind = 'disk' AND turns.key = taken.disk_id
)
SELECT true, pg_notify('gpu_dev_turn', 'disk ' || disk_id) FROM taken;
