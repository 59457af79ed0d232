-- Admission hears of it first: it is what moves a new request, and signals arrive in this order.
-- name: submit
WITH submitted AS (
    INSERT INTO reservations (reservation_id, user_id, name, gpu_type, gpu_count, duration, env_vars,
                              ssh_public_keys, cli_version, created_at, status, detail, last_updated,
                              next_turn_at, event_count, github_user, warning)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'pending', $11, $10, $10, 1, $12, $13)
    RETURNING reservation_id, gpu_type
), told AS (
    INSERT INTO reservation_events (reservation_id, number, kind, message, at, elapsed)
    SELECT reservation_id, 1, 'submitted', $11, $10, interval '0' FROM submitted
), audited AS (
    INSERT INTO audit_entries (username, action, target, address, outcome, detail)
    SELECT a.username, a.action, a.target, a.address, a.outcome, a.detail
    FROM submitted, jsonb_populate_recordset(NULL::audit_entries, $14) a
)
SELECT pgmq.send('gpu_reservations', jsonb_build_object('reservation_id', reservation_id)),
       pg_notify('gpu_dev_admission', gpu_type),
       pg_notify('gpu_dev_messages', 'gpu_reservations')
FROM submitted;

-- name: get
SELECT * FROM reservation_rows WHERE reservation_id = $1;

-- name: list_matching
SELECT * FROM reservation_rows
WHERE user_id = $1
  AND (name = $2 OR (length($2) >= 4 AND starts_with(reservation_id::text, $2)))
ORDER BY created_at DESC
LIMIT 50;

-- name: list_matching_of_all
SELECT * FROM reservation_rows
WHERE name = $1 OR (length($1) >= 4 AND starts_with(reservation_id::text, $1))
ORDER BY created_at DESC
LIMIT 50;

-- name: list_page
SELECT * FROM reservation_rows
WHERE ($1::integer IS NULL OR user_id = $1)
  AND (cardinality($2::text[]) = 0 OR status = ANY ($2))
  AND ($3::text IS NULL OR gpu_type = $3)
ORDER BY created_at DESC, reservation_id
LIMIT $4 OFFSET $5;

-- name: count_page
SELECT count(*) FROM reservations
WHERE ($1::integer IS NULL OR user_id = $1)
  AND (cardinality($2::text[]) = 0 OR status = ANY ($2))
  AND ($3::text IS NULL OR gpu_type = $3);

-- name: list_waiting
SELECT * FROM reservation_rows
WHERE status IN ('pending', 'queued')
ORDER BY gpu_type, created_at, reservation_id;

-- name: list_events
SELECT number, kind, reason, message, at, elapsed FROM reservation_events
WHERE reservation_id = $1 AND number > $2
ORDER BY number;

-- name: count_live
SELECT status, count(*) AS reservations, sum(gpu_count) AS gpus FROM reservations
WHERE cleaned_at IS NULL AND status IN ('pending', 'queued', 'preparing', 'active')
GROUP BY status;

-- The row and its operations are read in the snapshot of one statement: an operation that comes in
-- between has bumped the version, so that the write of this turn finds itself stale.
-- name: claim
WITH claimed AS (
    UPDATE reservations SET lease_token = $2, lease_until = clock_timestamp() + $3::interval
    WHERE reservation_id = $1
      AND (lease_until IS NULL OR lease_until <= clock_timestamp() OR lease_token = $2)
    RETURNING reservation_id, defects
)
SELECT r.*, claimed.defects,
       ARRAY(SELECT o.operation_id FROM operations o
             WHERE o.reservation_id = $1 AND o.status = 'requested' ORDER BY o.requested_at) AS operation_ids,
       ARRAY(SELECT o.kind FROM operations o
             WHERE o.reservation_id = $1 AND o.status = 'requested' ORDER BY o.requested_at) AS operation_kinds,
       ARRAY(SELECT o.requested_at FROM operations o
             WHERE o.reservation_id = $1 AND o.status = 'requested' ORDER BY o.requested_at) AS operation_times
FROM claimed JOIN reservation_rows r USING (reservation_id);

-- The guarded write: nothing happens unless the row is still the one that was read, and, where a lease
-- is given, still leased by the writer.
-- name: record
WITH changed AS (
    UPDATE reservations
    SET status = $4, reason = $5, detail = $6, node_name = $7, node_ip = $8, node_port = $9,
        ssh_host_keys = $10, placed_at = $11, launched_at = $12, expires_at = $13, reservation_ended = $14,
        cancelled_at = $15, cleaned_at = $16, queue_position = $17, estimated_start_at = $18,
        last_updated = $19::timestamptz, next_turn_at = CASE WHEN $16::timestamptz IS NULL THEN $19::timestamptz END,
        version = version + 1, event_count = event_count + 1
    WHERE reservation_id = $1 AND version = $2 AND ($3::uuid IS NULL OR lease_token = $3)
    RETURNING reservation_id, gpu_type, version, event_count
), told AS (
    INSERT INTO reservation_events (reservation_id, number, kind, reason, message, at, elapsed)
    SELECT reservation_id, event_count, $20, $21, $22, $19::timestamptz,
           $19::timestamptz - (SELECT e.at FROM reservation_events e
                  WHERE e.reservation_id = $1 ORDER BY e.number DESC LIMIT 1)
    FROM changed
), settled AS (
    UPDATE operations SET status = o.status, error = o.error, finished_at = $19::timestamptz
    FROM unnest($23::uuid[], $24::text[], $25::text[]) AS o (operation_id, status, error)
    WHERE operations.operation_id = o.operation_id AND EXISTS (SELECT FROM changed)
)
SELECT version,
       pg_notify('gpu_dev_event', reservation_id::text),
       CASE WHEN $3::uuid IS NULL THEN pg_notify('gpu_dev_turn', reservation_id::text) END,
       CASE WHEN $26::boolean THEN pg_notify('gpu_dev_admission', gpu_type) END
FROM changed;

-- name: release
UPDATE reservations
SET lease_token = NULL, lease_until = NULL, defects = 0,
    next_turn_at = CASE WHEN version = $3 THEN $4 ELSE next_turn_at END
WHERE reservation_id = $1 AND lease_token = $2;

-- name: postpone
UPDATE reservations SET lease_token = NULL, lease_until = NULL, next_turn_at = least(next_turn_at, $3)
WHERE reservation_id = $1 AND lease_token = $2;

-- name: count_defect
UPDATE reservations
SET lease_token = NULL, lease_until = NULL, defects = defects + 1, next_turn_at = $3
WHERE reservation_id = $1 AND lease_token = $2;

-- name: put_with_dead_letters
SELECT pgmq.send('gpu_reservations_dead', jsonb_build_object('reservation_id', $1::uuid)),
       ARRAY(SELECT pgmq.archive('gpu_reservations', ARRAY(
           SELECT msg_id FROM pgmq.q_gpu_reservations WHERE message ->> 'reservation_id' = $1::uuid::text)));

-- name: take_over
UPDATE reservations SET lease_token = NULL, lease_until = NULL, next_turn_at = least(next_turn_at, $1)
WHERE cleaned_at IS NULL;

-- name: list_due
SELECT reservation_id FROM reservations
WHERE next_turn_at <= $1 AND (lease_until IS NULL OR lease_until <= clock_timestamp())
ORDER BY next_turn_at
LIMIT $2;

-- name: find_next_turn
SELECT min(greatest(next_turn_at, lease_until)) FROM reservations
WHERE next_turn_at IS NOT NULL AND greatest(next_turn_at, lease_until) > $1;
