-- Requests of one user are counted one after the other, so that two at once do not both find room in a quota.
-- name: lock_quota
SELECT pg_advisory_xact_lock(hashtext('gpu-dev quota'), $1::integer);

-- What a user has of each type: requests that wait, what is reserved, and what was used since then.
-- name: read_use
SELECT wanted.gpu_type,
       count(*) FILTER (WHERE status IN ('pending', 'queued')) AS waiting,
       coalesce(sum(greatest(1, gpu_count)) FILTER (WHERE status IN ('preparing', 'active')), 0)::integer AS gpus,
       (coalesce(sum(greatest(1, gpu_count) * extract(epoch FROM
            CASE WHEN status IN ('pending', 'queued', 'preparing') THEN duration
            WHEN status = 'active' THEN greatest(expires_at - $4::timestamptz, interval '0') END)), 0) / 3600)::float8
           AS reserved_gpu_hours,
       (coalesce(sum(greatest(1, gpu_count) * extract(epoch FROM
            CASE WHEN status IN ('pending', 'queued', 'preparing') THEN duration
            ELSE coalesce(reservation_ended, expires_at) - greatest(launched_at, wanted.since) END)), 0) / 3600)::float8
           AS gpu_hours,
       coalesce(sum(greatest(1, gpu_count)) FILTER (WHERE CASE status WHEN 'preparing' THEN duration
           WHEN 'active' THEN expires_at - $4::timestamptz END > $6::interval), 0)::integer AS long_gpus,
       coalesce(bool_or(reservation_id = $5), false) AS is_repeat
FROM unnest($2::text[], $3::timestamptz[]) AS wanted (gpu_type, since)
LEFT JOIN reservations r ON r.user_id = $1 AND r.gpu_type = wanted.gpu_type
  AND (r.status IN ('pending', 'queued', 'preparing', 'active') OR r.reservation_ended > wanted.since)
GROUP BY wanted.gpu_type;

-- Admission hears of it first: it is what moves a new request, and signals arrive in this order.
-- The disk is made if there is none of that name; its new version makes every decision stale that was made
-- before it had been asked for. One that is only wished for is done without where a live reservation has it.
-- name: submit
WITH wanted AS (
    INSERT INTO disks (disk_id, user_id, name, size_gb, created_at, state)
    SELECT $17, $2, $18, $19, $10, 'available'
    WHERE $18::text IS NOT NULL
      AND NOT ($20::text IS NOT NULL AND EXISTS (
          SELECT FROM disks d JOIN reservations r USING (disk_id)
          WHERE d.user_id = $2 AND d.name = $18 AND d.state NOT IN ('soft_deleted', 'purging', 'purged')
            AND r.status IN ('pending', 'queued', 'preparing', 'active')))
    ON CONFLICT (user_id, name) WHERE state NOT IN ('soft_deleted', 'purging', 'purged')
    DO UPDATE SET version = disks.version + 1
    RETURNING disk_id, name
), submitted AS (
    INSERT INTO reservations (reservation_id, user_id, name, gpu_type, gpu_count, duration, env_vars,
                              ssh_public_keys, cli_version, created_at, status, detail, last_updated,
                              event_count, github_user, warning, node_count, image, disk_id,
                              disk_name, start_at, node_labels)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'pending', $11, $10, 1, $12,
           CASE WHEN $18 IS NOT NULL AND w.disk_id IS NULL THEN concat_ws(' ', nullif($13, ''), $20) ELSE $13 END,
           $15, $16, w.disk_id, coalesce(w.name, ''), $21::timestamptz, $22::jsonb
    FROM (SELECT) one LEFT JOIN wanted w ON true
    RETURNING reservation_id, gpu_type, disk_id, disk_name, warning
), due AS (
    INSERT INTO turns (kind, key, asked)
    SELECT 'reservation', reservation_id, 1 FROM submitted
    UNION ALL
    SELECT 'disk', disk_id, 0 FROM wanted
    ON CONFLICT (kind, key) DO NOTHING
), told AS (
    INSERT INTO reservation_events (reservation_id, number, kind, message, at, elapsed)
    SELECT reservation_id, 1, 'submitted', $11, $10, interval '0' FROM submitted
), audited AS (
    INSERT INTO audit_entries (username, action, target, address, outcome, detail)
    SELECT a.username, a.action, a.target, a.address, a.outcome, a.detail
    FROM submitted, jsonb_populate_recordset(NULL::audit_entries, $14) a
)
SELECT disk_id, disk_name, warning,
       pgmq.send('gpu_reservations', jsonb_build_object('reservation_id', reservation_id)),
       pg_notify('gpu_dev_admission', gpu_type),
       pg_notify('gpu_dev_messages', 'gpu_reservations')
FROM submitted;

-- name: get
SELECT * FROM reservation_rows WHERE reservation_id = $1;

-- Two halves, each by an index of its own, since a user may have had very many; OFFSET 0 keeps the planner from
-- going through all of them instead.
-- name: list_matching
SELECT r.*
FROM (SELECT reservation_id FROM reservations WHERE user_id = $1 AND name = $2
      UNION
      SELECT reservation_id FROM reservations WHERE reservation_id BETWEEN $3 AND $4) meant
JOIN LATERAL (SELECT * FROM reservation_rows WHERE reservation_id = meant.reservation_id OFFSET 0) r
  ON r.user_id = $1
ORDER BY r.created_at DESC
LIMIT 50;

-- For whoever has the key: one row with nothing in it if there is none, and no row for no such key. OFFSET 0
-- keeps the planner from looking for the id among all that the user ever had.
-- name: find_for_key
SELECT caller.user_id AS caller_id, caller.username AS caller_name, caller.is_active AS caller_is_active,
       caller.identity AS caller_identity,
       found.*
FROM callers caller
LEFT JOIN (SELECT * FROM reservation_rows WHERE reservation_id = $3 OFFSET 0) found ON found.user_id = caller.user_id
WHERE caller.key_hash = $1 AND caller.expires_at > $2;

-- name: list_matching_for_key
SELECT caller.user_id AS caller_id, caller.username AS caller_name, caller.is_active AS caller_is_active,
       caller.identity AS caller_identity,
       found.*
FROM callers caller LEFT JOIN LATERAL (
    SELECT r.*
    FROM (SELECT reservation_id FROM reservations WHERE user_id = caller.user_id AND name = $3
          UNION
          SELECT reservation_id FROM reservations WHERE reservation_id BETWEEN $4 AND $5) meant
    JOIN LATERAL (SELECT * FROM reservation_rows WHERE reservation_id = meant.reservation_id OFFSET 0) r
      ON r.user_id = caller.user_id
    ORDER BY r.created_at DESC
    LIMIT 50) found ON true
WHERE caller.key_hash = $1 AND caller.expires_at > $2
ORDER BY found.created_at DESC;

-- name: list_matching_of_all
SELECT r.*
FROM (SELECT reservation_id FROM reservations WHERE name = $1
      UNION
      SELECT reservation_id FROM reservations WHERE reservation_id BETWEEN $2 AND $3) meant
JOIN reservation_rows r USING (reservation_id)
ORDER BY r.created_at DESC
LIMIT 50;

-- All of a user's are counted already; those of some status or type are, each time, from the index alone.
-- OFFSET 0 has them counted once, not once a row.
-- name: list_page
SELECT page.*, counted.total
FROM (SELECT CASE WHEN cardinality($2::text[]) = 0 AND $3::text IS NULL
             THEN (SELECT coalesce(sum(counted), 0) FROM reservation_counts WHERE user_id = $1)
             ELSE (SELECT count(*) FROM reservations
                   WHERE user_id = $1
                     AND (cardinality($2) = 0 OR status = ANY ($2))
                     AND ($3 IS NULL OR gpu_type = $3)) END AS total OFFSET 0) counted
LEFT JOIN LATERAL (
    SELECT * FROM reservation_rows
    WHERE user_id = $1
      AND (cardinality($2) = 0 OR status = ANY ($2))
      AND ($3 IS NULL OR gpu_type = $3)
    ORDER BY created_at DESC, reservation_id
    LIMIT $4 OFFSET $5) page ON true
ORDER BY page.created_at DESC, page.reservation_id;

-- name: list_page_for_key
SELECT caller.user_id AS caller_id, caller.username AS caller_name, caller.is_active AS caller_is_active,
       caller.identity AS caller_identity,
       page.*, counted.total
FROM callers caller
CROSS JOIN LATERAL (
    SELECT count(*) AS total FROM reservations r
    WHERE r.user_id = caller.user_id
      AND (cardinality($3::text[]) = 0 OR r.status = ANY ($3))
      AND ($4::text IS NULL OR r.gpu_type = $4) OFFSET 0) counted
LEFT JOIN LATERAL (
    SELECT * FROM reservation_rows r
    WHERE r.user_id = caller.user_id
      AND (cardinality($3) = 0 OR r.status = ANY ($3))
      AND ($4 IS NULL OR r.gpu_type = $4)
    ORDER BY r.created_at DESC, r.reservation_id
    LIMIT $5 OFFSET $6) page ON true
WHERE caller.key_hash = $1 AND caller.expires_at > $2
ORDER BY page.created_at DESC, page.reservation_id;

-- The newest of whoever has the key, by their marks alone.
-- name: list_marks_for_key
SELECT caller.user_id AS caller_id, caller.username AS caller_name, caller.is_active AS caller_is_active,
       caller.identity AS caller_identity,
       ARRAY(SELECT m.mark FROM reservation_marks m WHERE m.user_id = caller.user_id
             ORDER BY m.created_at DESC, m.reservation_id LIMIT $3 OFFSET $4) AS marks,
       (SELECT coalesce(sum(c.counted), 0) FROM reservation_counts c WHERE c.user_id = caller.user_id) AS total
FROM callers caller
WHERE caller.key_hash = $1 AND caller.expires_at > $2;

-- name: list_marked
SELECT r.*, m.mark FROM reservation_rows r JOIN reservation_marks m USING (reservation_id)
WHERE r.reservation_id = ANY ($1::uuid[]);

-- name: list_page_of_all
SELECT page.*, counted.total
FROM (SELECT CASE WHEN cardinality($1::text[]) = 0 AND $2::text IS NULL
             THEN (SELECT coalesce(sum(counted), 0) FROM reservation_counts)
             ELSE (SELECT count(*) FROM reservations
                   WHERE (cardinality($1) = 0 OR status = ANY ($1))
                     AND ($2 IS NULL OR gpu_type = $2)) END AS total OFFSET 0) counted
LEFT JOIN LATERAL (
    SELECT * FROM reservation_rows
    WHERE (cardinality($1) = 0 OR status = ANY ($1))
      AND ($2 IS NULL OR gpu_type = $2)
    ORDER BY created_at DESC, reservation_id
    LIMIT $3 OFFSET $4) page ON true
ORDER BY page.created_at DESC, page.reservation_id;

-- name: list_waiting
SELECT * FROM reservation_rows
WHERE status IN ('pending', 'queued')
ORDER BY gpu_type, created_at, reservation_id;

-- name: list_events
SELECT number, kind, reason, message, at, elapsed FROM reservation_events
WHERE reservation_id = $1 AND number > $2
ORDER BY number;

-- name: list_active
SELECT * FROM reservation_rows WHERE status = 'active' AND cleaned_at IS NULL ORDER BY reservation_id;

-- name: list_connectable
SELECT reservation_id
FROM reservations JOIN api_users USING (user_id)
WHERE reservation_id = ANY ($1::uuid[]) AND reservations.status = 'active' AND api_users.is_active;

-- name: wake
SELECT pg_notify('gpu_dev_turn', 'reservation ' || $1);

-- name: count_live
SELECT status, count(*) AS reservations, sum(gpu_count) AS gpus FROM reservations
WHERE cleaned_at IS NULL AND status IN ('pending', 'queued', 'preparing', 'active')
GROUP BY status;

-- The row and its operations are read in the snapshot of one statement: an operation that comes in
-- between has bumped the version, so that the write of this turn finds itself stale.
-- name: claim
WITH claimed AS (
-- include: turns.claim
)
SELECT r.*, claimed.asked, claimed.defects, waiting.*,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('node', d.node_name, 'gpu_type', d.gpu_type,
                                                     'reason', d.reason) ORDER BY d.node_name), '[]')
        FROM drains d
        WHERE d.node_name = r.node_name
           OR r.other_members @> jsonb_build_array(jsonb_build_object('node', d.node_name))) AS drains
FROM claimed JOIN reservation_rows r ON r.reservation_id = claimed.key
CROSS JOIN LATERAL (
    SELECT array_agg(operation_id) AS operation_ids, array_agg(kind) AS operation_kinds,
           array_agg(requested_at) AS operation_times, array_agg(is_by_admin) AS operation_admins,
           array_agg(length) AS operation_lengths, array_agg(not_before) AS operation_waits,
           array_agg(reason) AS operation_reasons
    FROM (SELECT * FROM operations WHERE reservation_id = $1 AND status = 'requested' ORDER BY requested_at) o
) waiting;

-- The guarded write: nothing happens unless the row is still the one that was read, and, where a lease
-- is given, still leased by the writer. $28 has the columns that `recording.MARKS` names.
-- name: record
WITH changed AS (
    UPDATE reservations r
    SET status = $4, reason = $5, detail = $6, node_name = $7, node_ip = $8, node_port = $9,
        ssh_host_keys = $10, placed_at = $11, launched_at = $12, expires_at = $13, reservation_ended = $14,
        cancelled_at = $15, cleaned_at = $16, queue_position = $17, estimated_start_at = $18,
        planned_nodes = CASE WHEN $4 IN ('pending', 'queued') THEN r.planned_nodes ELSE '{}' END,
        likely_from = CASE WHEN $4 IN ('pending', 'queued') THEN r.likely_from END,
        likely_to = CASE WHEN $4 IN ('pending', 'queued') THEN r.likely_to END,
        ebs_volume_id = CASE WHEN $4 = 'active'
                        THEN (SELECT d.ebs_volume_id FROM disks d WHERE d.disk_id = r.disk_id)
                        ELSE r.ebs_volume_id END,
        other_members = $27, port_slot = $29, last_updated = $19::timestamptz,
        version = r.version + 1, event_count = r.event_count + 1,
        warned_minutes = m.warned_minutes, extension_error = m.extension_error, oom_count = m.oom_count,
        last_oom_at = m.last_oom_at, told_notices = m.told_notices, progress = m.progress,
        progress_at = m.progress_at, stale_since = m.stale_since, driven_at = m.driven_at,
        kept_until = m.kept_until, idle_warned_at = m.idle_warned_at, idle_warning = m.idle_warning,
        drain_warning = m.drain_warning, outcome = m.outcome, exit_code = m.exit_code
    FROM jsonb_populate_record(NULL::reservations, $28) m
    WHERE r.reservation_id = $1 AND r.version = $2
      AND ($3::uuid IS NULL OR EXISTS (SELECT FROM turns WHERE kind = 'reservation' AND key = $1 AND lease_token = $3))
    RETURNING r.reservation_id, r.gpu_type, r.version, r.event_count
), due AS (
    UPDATE turns SET next_turn_at = $19::timestamptz, asked = asked + ($3::uuid IS NULL)::integer
    FROM changed WHERE turns.kind = 'reservation' AND turns.key = changed.reservation_id
), told AS (
    INSERT INTO reservation_events (reservation_id, number, kind, reason, message, at, elapsed)
    SELECT reservation_id, event_count, $20, $21, $22, $19::timestamptz,
           $19::timestamptz - (SELECT e.at FROM reservation_events e
                  WHERE e.reservation_id = $1 ORDER BY e.number DESC LIMIT 1)
    FROM changed
), started AS (
    UPDATE forecasts SET started_at = $19::timestamptz
    FROM changed WHERE forecasts.reservation_id = changed.reservation_id AND $4 = 'preparing'
), settled AS (
    UPDATE operations SET status = o.status, error = o.error, finished_at = $19::timestamptz
    FROM unnest($23::uuid[], $24::text[], $25::jsonb[]) AS o (operation_id, status, error)
    WHERE operations.operation_id = o.operation_id AND EXISTS (SELECT FROM changed)
), let_go AS (
    UPDATE turns SET asked = asked + 1
    FROM changed JOIN disks USING (reservation_id)
    WHERE turns.kind = 'disk' AND turns.key = disks.disk_id AND $4 NOT IN ('preparing', 'active')
    RETURNING disks.disk_id
)
SELECT version,
       (SELECT pg_notify('gpu_dev_turn', 'disk ' || disk_id) FROM let_go),
       pg_notify('gpu_dev_event', reservation_id::text),
       CASE WHEN $3::uuid IS NULL THEN pg_notify('gpu_dev_turn', 'reservation ' || reservation_id) END,
       CASE WHEN $26::boolean THEN pg_notify('gpu_dev_admission', gpu_type) END
FROM changed;

-- name: note
WITH noted AS (
    UPDATE reservations r
    SET detail = $4,
        warned_minutes = m.warned_minutes, extension_error = m.extension_error, oom_count = m.oom_count,
        last_oom_at = m.last_oom_at, told_notices = m.told_notices, progress = m.progress,
        progress_at = m.progress_at, stale_since = m.stale_since, driven_at = m.driven_at,
        kept_until = m.kept_until, idle_warned_at = m.idle_warned_at, idle_warning = m.idle_warning,
        drain_warning = m.drain_warning, outcome = m.outcome, exit_code = m.exit_code
    FROM jsonb_populate_record(NULL::reservations, $5) m
    WHERE r.reservation_id = $1 AND r.version = $2
      AND EXISTS (SELECT FROM turns WHERE kind = 'reservation' AND key = $1 AND lease_token = $3)
    RETURNING r.reservation_id
)
SELECT reservation_id, pg_notify('gpu_dev_event', reservation_id::text) FROM noted;

-- name: list_unfinished
SELECT reservation_id FROM reservations WHERE reservation_id = ANY ($1::uuid[]) AND cleaned_at IS NULL;
