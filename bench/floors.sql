-- name: get
SELECT to_json(r)::text
FROM callers caller
JOIN (SELECT * FROM reservation_rows WHERE reservation_id = $2::uuid OFFSET 0) r USING (user_id)
WHERE caller.key_hash = $1 AND caller.expires_at > now() AND caller.is_active;

-- name: list
SELECT json_build_object(
    'jobs', (SELECT json_agg(page) FROM (
                 SELECT * FROM reservation_rows r WHERE r.user_id = caller.user_id
                 ORDER BY r.created_at DESC, r.reservation_id LIMIT 50) page),
    'total', (SELECT sum(c.counted) FROM reservation_counts c WHERE c.user_id = caller.user_id))::text
FROM callers caller
WHERE caller.key_hash = $1 AND caller.expires_at > now() AND caller.is_active;

-- name: availability
SELECT (SELECT json_object_agg(room.gpu_type, to_json(room)) FROM availability_rows room)::text
FROM callers caller
WHERE caller.key_hash = $1 AND caller.expires_at > now() AND caller.is_active;

-- name: submit
WITH submitted AS (
    INSERT INTO reservation_records (reservation_id, user_id, name, gpu_type, gpu_count, duration,
                                     created_at, status, last_updated, event_count)
    SELECT id, user_id, 'job-' || id, $2::text, $3::integer, $4::float8 * interval '1 hour',
           now(), 'pending', now(), 1
    FROM callers caller, gen_random_uuid() id
    WHERE caller.key_hash = $1 AND caller.expires_at > now() AND caller.is_active
    RETURNING reservation_id, gpu_type
), set_up AS (
    INSERT INTO reservation_settings SELECT reservation_id, '', '{}', $5::text[], '', '' FROM submitted
), due AS (
    INSERT INTO turns (kind, key, asked) SELECT 'reservation', reservation_id, 1 FROM submitted
), told AS (
    INSERT INTO reservation_events (reservation_id, number, kind, fact, at, elapsed)
    SELECT reservation_id, 1, 'submitted', '{"key": "server_answers"}', now(), interval '0' FROM submitted
), audited AS (
    INSERT INTO audit_entries (username, action, target, address, outcome, detail)
    SELECT 'bench', 'submit', reservation_id, '127.0.0.1', 'done', '' FROM submitted
)
SELECT json_build_object('job_id', reservation_id,
                         'message', pgmq.send('gpu_reservations',
                                              jsonb_build_object('reservation_id', reservation_id)))::text,
       pg_notify('gpu_dev_admission', gpu_type),
       pg_notify('gpu_dev_messages', 'gpu_reservations')
FROM submitted;
