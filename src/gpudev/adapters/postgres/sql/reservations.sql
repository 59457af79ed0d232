-- Requests of one user are counted one after the other, so that two at once do not both find room in a quota.
-- name: lock_quota
SELECT pg_advisory_xact_lock(hashtext('gpu-dev quota'), :user_id::integer);

-- What a user has of each type: requests that wait, what is reserved, and what was used since then.
-- name: read_use
SELECT wanted.gpu_type,
       count(*) FILTER (WHERE status IN ('pending', 'queued')) AS waiting,
       coalesce(sum(greatest(1, gpu_count)) FILTER (WHERE status IN ('preparing', 'active')), 0)::integer AS gpus,
       (coalesce(sum(greatest(1, gpu_count) * extract(epoch FROM
            CASE WHEN status IN ('pending', 'queued', 'preparing') THEN duration
            WHEN status = 'active' THEN greatest(expires_at - :now::timestamptz, interval '0') END)), 0) / 3600)::float8
           AS reserved_gpu_hours,
       (coalesce(sum(greatest(1, gpu_count) * extract(epoch FROM
            CASE WHEN status IN ('pending', 'queued', 'preparing') THEN duration
            WHEN launched_at IS NOT NULL THEN coalesce(ended_at, expires_at) - greatest(launched_at, wanted.since) END)),
            0) / 3600)::float8
           AS gpu_hours,
       coalesce(sum(greatest(1, gpu_count)) FILTER (WHERE CASE status WHEN 'preparing' THEN duration
           WHEN 'active' THEN expires_at - :now::timestamptz END > :long::interval), 0)::integer AS long_gpus,
       coalesce(bool_or(reservation_id = :id), false) AS is_repeat
FROM unnest(:gpu_types::text[], :since::timestamptz[]) AS wanted (gpu_type, since)
LEFT JOIN (
    SELECT reservation_id, user_id, gpu_type, gpu_count, status, duration, launched_at, expires_at, ended_at
    FROM reservation_records
    UNION ALL
    SELECT NULL, user_id, gpu_type, gpu_count, NULL, NULL, launched_at, expires_at, ended_at
    FROM reservation_runs
) r ON r.user_id = :user_id AND r.gpu_type = wanted.gpu_type
  AND (r.status IN ('pending', 'queued', 'preparing', 'active') OR r.ended_at > wanted.since)
GROUP BY wanted.gpu_type;

-- Whoever has the key, and whether a live reservation has their disk of this name.
-- name: find_submitter
SELECT caller.user_id AS caller_id, caller.username AS caller_name, caller.is_active AS caller_is_active,
       caller.identity AS caller_identity,
       EXISTS (SELECT FROM disks d JOIN reservation_records r USING (disk_id)
               WHERE d.user_id = caller.user_id AND d.name = :disk_name
                 AND d.state NOT IN ('soft_deleted', 'purging', 'purged')
                 AND r.status IN ('pending', 'queued', 'preparing', 'active')) AS is_disk_taken
FROM callers caller
WHERE caller.key_hash = :key_hash AND caller.expires_at > :now;

-- The disk is made if there is none of that name; its new version makes every decision stale that was made before it
-- had been asked for. Admission hears of the request first: it is what moves it, and signals arrive in this order.
-- name: submit
WITH home AS (
    INSERT INTO disks (disk_id, user_id, name, size_gb, created_at, state)
    SELECT disk_id, user_id, name, size_gb, created_at, state
    FROM (SELECT (:home::disks).*) wanted WHERE disk_id IS NOT NULL
    ON CONFLICT (user_id, name) WHERE state NOT IN ('soft_deleted', 'purging', 'purged')
    DO UPDATE SET version = disks.version + 1
    RETURNING disk_id, name
), submitted AS (
    INSERT INTO reservation_records (reservation_id, user_id, name, gpu_type, gpu_count, node_count, node_labels,
                                     duration, start_at, warning, created_at, last_updated, status, detail,
                                     event_count, disk_id, disk_name)
    SELECT r.reservation_id, r.user_id, r.name, r.gpu_type, r.gpu_count, r.node_count, r.node_labels,
           r.duration, r.start_at, r.warning, r.created_at, r.created_at, r.status, r.detail,
           1, home.disk_id, coalesce(home.name, '')
    FROM (SELECT (:record::reservation_records).*) r LEFT JOIN home ON true
    RETURNING reservation_id, user_id, gpu_type, created_at, disk_id, disk_name
), set_up AS (
    INSERT INTO reservation_settings (reservation_id, image, env_vars, ssh_public_keys, github_user, client_version,
                                      time_zone)
    SELECT s.reservation_id, s.image, s.env_vars, s.ssh_public_keys, s.github_user, s.client_version, s.time_zone
    FROM submitted, (SELECT (:settings::reservation_settings).*) s
), due AS (
    INSERT INTO turns (kind, key, asked)
    SELECT 'reservation', reservation_id, 1 FROM submitted
    UNION ALL
    SELECT 'disk', disk_id, 0 FROM home
    ON CONFLICT (kind, key) DO NOTHING
), told AS (
    INSERT INTO reservation_events (reservation_id, number, kind, fact, at, elapsed)
    SELECT reservation_id, 1, 'submitted', :event_fact::jsonb, created_at, interval '0' FROM submitted
), counted AS (
    INSERT INTO reservation_counts AS known (user_id, gpu_type, slot, counted)
    SELECT user_id, gpu_type, pg_backend_pid() % 16, 1 FROM submitted
    ON CONFLICT (user_id, gpu_type, slot) DO UPDATE SET counted = known.counted + 1
), audited AS (
    INSERT INTO audit_entries (username, action, target, address, outcome, detail)
    SELECT entry.* FROM submitted, (
    -- include: audit.entries
    ) entry
)
SELECT disk_id, disk_name,
       (SELECT pgmq.send('notifications', jsonb_build_object('reservation_id', reservation_id, 'number', 1))
        FROM notification_targets t WHERE t.user_id = submitted.user_id),
       pg_notify('gpu_dev_admission', gpu_type),
       pg_notify('gpu_dev_messages', 'gpu_reservations')
FROM submitted CROSS JOIN LATERAL
    pgmq.send('gpu_reservations', jsonb_build_object('reservation_id', reservation_id)) AS message_id;

-- The disk of a request that is made again, if it is still there. As with a submit, its new version makes every
-- decision stale that was made before.
-- name: ask_for_disk
UPDATE disks SET version = version + 1
WHERE disk_id = :disk_id AND state NOT IN ('soft_deleted', 'purging', 'purged')
RETURNING true;

-- One reservation.
-- name: get
SELECT * FROM reservation_rows WHERE reservation_id = :id;

-- Two halves, each by an index of its own, since a user may have had very many; OFFSET 0 keeps the planner from
-- going through all of them instead.
-- name: list_matching
SELECT r.*
FROM (SELECT reservation_id FROM reservation_records WHERE user_id = :user_id AND name = :text
      UNION
      SELECT reservation_id FROM reservation_records WHERE reservation_id BETWEEN :first AND :last) meant
JOIN LATERAL (SELECT * FROM reservation_rows WHERE reservation_id = meant.reservation_id OFFSET 0) r
  ON r.user_id = :user_id
ORDER BY r.created_at DESC
LIMIT 50;

-- For whoever has the key: one row with no mark if there is none, and no row for no such key. The reservation itself
-- only if its mark is not the known one. OFFSET 0 keeps the planner from looking for the id among all of the user.
-- name: find_for_key
SELECT caller.user_id AS caller_id, caller.username AS caller_name, caller.is_active AS caller_is_active,
       caller.identity AS caller_identity,
       own.mark, found.*, caller.username
FROM callers caller
LEFT JOIN (SELECT * FROM reservation_marks WHERE reservation_id = :id OFFSET 0) own ON own.user_id = caller.user_id
LEFT JOIN LATERAL (SELECT * FROM reservation_parts
                   WHERE reservation_id = own.reservation_id AND own.mark IS DISTINCT FROM :known::bytea) found ON true
WHERE caller.key_hash = :key_hash AND caller.expires_at > :now;

-- The same for a name or a part of an id, with all that match.
-- name: list_matching_for_key
SELECT caller.user_id AS caller_id, caller.username AS caller_name, caller.is_active AS caller_is_active,
       caller.identity AS caller_identity,
       found.*
FROM callers caller LEFT JOIN LATERAL (
    SELECT r.*
    FROM (SELECT reservation_id FROM reservation_records WHERE user_id = caller.user_id AND name = :text
          UNION
          SELECT reservation_id FROM reservation_records WHERE reservation_id BETWEEN :first AND :last) meant
    JOIN LATERAL (SELECT * FROM reservation_rows WHERE reservation_id = meant.reservation_id OFFSET 0) r
      ON r.user_id = caller.user_id
    ORDER BY r.created_at DESC
    LIMIT 50) found ON true
WHERE caller.key_hash = :key_hash AND caller.expires_at > :now
ORDER BY found.created_at DESC;

-- Reservations of anybody with this name or id.
-- name: list_matching_of_all
SELECT r.*
FROM (SELECT reservation_id FROM reservation_records WHERE name = :text
      UNION
      SELECT reservation_id FROM reservation_records WHERE reservation_id BETWEEN :first AND :last) meant
JOIN reservation_rows r USING (reservation_id)
ORDER BY r.created_at DESC
LIMIT 50;

-- A page of one user's reservations. Without a status they are counted already. OFFSET 0 has them counted once, not once a row.
-- name: list_page
SELECT page.*, counted.total
FROM (SELECT CASE WHEN cardinality(:statuses::text[]) = 0
             THEN (SELECT coalesce(sum(counted), 0) FROM reservation_counts
                   WHERE user_id = :user_id AND (:gpu_type::text IS NULL OR gpu_type = :gpu_type))
             ELSE (SELECT count(*) FROM reservation_records
                   WHERE user_id = :user_id AND status = ANY (:statuses)
                     AND (:gpu_type IS NULL OR gpu_type = :gpu_type)) END AS total OFFSET 0) counted
LEFT JOIN LATERAL (
    SELECT * FROM reservation_rows
    WHERE user_id = :user_id
      AND (cardinality(:statuses) = 0 OR status = ANY (:statuses))
      AND (:gpu_type IS NULL OR gpu_type = :gpu_type)
    ORDER BY created_at DESC, reservation_id
    LIMIT :limit OFFSET :offset) page ON true
ORDER BY page.created_at DESC, page.reservation_id;

-- The newest of whoever has the key, of one type or of all, by their marks alone. They are counted already.
-- name: list_marks_for_key
SELECT caller.user_id AS caller_id, caller.username AS caller_name, caller.is_active AS caller_is_active,
       caller.identity AS caller_identity,
       ARRAY(SELECT m.mark FROM reservation_marks m
             WHERE m.user_id = caller.user_id AND (:gpu_type::text IS NULL OR m.gpu_type = :gpu_type)
             ORDER BY m.created_at DESC, m.reservation_id LIMIT :limit OFFSET :offset) AS marks,
       (SELECT coalesce(sum(c.counted), 0) FROM reservation_counts c
        WHERE c.user_id = caller.user_id AND (:gpu_type IS NULL OR c.gpu_type = :gpu_type)) AS total
FROM callers caller
WHERE caller.key_hash = :key_hash AND caller.expires_at > :now;

-- The same of some statuses, which are counted each time, from the index alone.
-- name: list_marks_by_status_for_key
SELECT caller.user_id AS caller_id, caller.username AS caller_name, caller.is_active AS caller_is_active,
       caller.identity AS caller_identity,
       ARRAY(SELECT m.mark FROM reservation_marks m
             WHERE m.user_id = caller.user_id AND m.status = ANY (:statuses::text[])
               AND (:gpu_type::text IS NULL OR m.gpu_type = :gpu_type)
             ORDER BY m.created_at DESC, m.reservation_id LIMIT :limit OFFSET :offset) AS marks,
       (SELECT count(*) FROM reservation_records r
        WHERE r.user_id = caller.user_id AND r.status = ANY (:statuses)
          AND (:gpu_type IS NULL OR r.gpu_type = :gpu_type)) AS total
FROM callers caller
WHERE caller.key_hash = :key_hash AND caller.expires_at > :now;

-- Reservations with their marks.
-- name: list_marked
SELECT r.*, m.mark FROM reservation_rows r JOIN reservation_marks m USING (reservation_id)
WHERE r.reservation_id = ANY (:ids::uuid[]);

-- A page of everybody's reservations.
-- name: list_page_of_all
SELECT page.*, counted.total
FROM (SELECT CASE WHEN cardinality(:statuses::text[]) = 0
             THEN (SELECT coalesce(sum(counted), 0) FROM reservation_counts
                   WHERE :gpu_type::text IS NULL OR gpu_type = :gpu_type)
             ELSE (SELECT count(*) FROM reservation_records
                   WHERE status = ANY (:statuses)
                     AND (:gpu_type IS NULL OR gpu_type = :gpu_type)) END AS total OFFSET 0) counted
LEFT JOIN LATERAL (
    SELECT * FROM reservation_rows
    WHERE (cardinality(:statuses) = 0 OR status = ANY (:statuses))
      AND (:gpu_type IS NULL OR gpu_type = :gpu_type)
    ORDER BY created_at DESC, reservation_id
    LIMIT :limit OFFSET :offset) page ON true
ORDER BY page.created_at DESC, page.reservation_id;

-- The requests that wait, in the order of the queues.
-- name: list_waiting
SELECT * FROM reservation_rows
WHERE status IN ('pending', 'queued')
ORDER BY gpu_type, coalesce(requested_at, created_at), reservation_id;

-- What happened to a reservation since an event.
-- name: list_events
SELECT number, kind, reason, fact, at, elapsed FROM reservation_events
WHERE reservation_id = :id AND number > :after
ORDER BY number;

-- The reservations that have a server.
-- name: list_active
SELECT * FROM reservation_rows WHERE status = 'active' AND cleaned_at IS NULL ORDER BY reservation_id;

-- Those of these reservations to which their users may connect.
-- name: list_connectable
SELECT reservation_id
FROM reservation_records JOIN api_users USING (user_id)
WHERE reservation_id = ANY (:ids::uuid[]) AND reservation_records.status = 'active' AND api_users.is_active;

-- Wake up the controller of a reservation.
-- name: wake
SELECT pg_notify('gpu_dev_turn', 'reservation ' || :id);

-- How many live reservations there are in each status.
-- name: count_live
SELECT status, count(*) AS reservations, sum(gpu_count) AS gpus FROM reservation_records
WHERE cleaned_at IS NULL AND status IN ('pending', 'queued', 'preparing', 'active', 'stopped')
GROUP BY status;

-- The row and its operations are read in the snapshot of one statement: an operation that comes in
-- between has bumped the version, so that the write of this turn finds itself stale.
-- name: claim
WITH claimed AS (
-- include: turns.claim
)
SELECT r.*, seen.asked, claimed.defects, waiting.*,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('node', d.node_name, 'gpu_type', d.gpu_type,
                                                     'reason', d.reason) ORDER BY d.node_name), '[]')
        FROM drains d WHERE d.node_name IN (
            SELECT m.node_name FROM reservation_members m WHERE m.reservation_id = claimed.key)) AS drains
FROM claimed JOIN turns seen ON seen.kind = :kind AND seen.key = claimed.key
JOIN reservation_rows r ON r.reservation_id = claimed.key
CROSS JOIN LATERAL (
    SELECT array_agg(operation_id) AS operation_ids, array_agg(kind) AS operation_kinds,
           array_agg(requested_at) AS operation_times, array_agg(is_by_admin) AS operation_admins,
           array_agg(length) AS operation_lengths, array_agg(not_before) AS operation_waits,
           array_agg(reason) AS operation_reasons
    FROM (SELECT * FROM operations WHERE reservation_id = :id AND status = 'requested' ORDER BY requested_at) o
) waiting;

-- The guarded write of the state, with its event: nothing happens unless the record is still the one that was read,
-- and, where a lease is given, still leased by the writer.
-- name: write_state
WITH changed AS (
    UPDATE reservation_records r
    SET status = :status, reason = :reason, detail = :detail, placed_at = :placed_at, launched_at = :launched_at,
        expires_at = :expires_at, ended_at = :ended_at, cleaned_at = :cleaned_at, port_slot = nullif(:port_slot, ''),
        last_updated = :at::timestamptz, version = r.version + 1, event_count = r.event_count + 1
    WHERE r.reservation_id = :id AND r.version = :version
      AND (:lease_token::uuid IS NULL OR EXISTS (
          SELECT FROM turns WHERE kind = 'reservation' AND key = :id AND lease_token = :lease_token))
    RETURNING r.reservation_id, r.user_id, r.version, r.event_count
), due AS (
    UPDATE turns SET next_turn_at = :at::timestamptz, asked = asked + (:lease_token IS NULL)::integer
    FROM changed WHERE turns.kind = 'reservation' AND turns.key = changed.reservation_id
), told AS (
    INSERT INTO reservation_events (reservation_id, number, kind, reason, fact, at, elapsed)
    SELECT reservation_id, event_count, :event_kind, :event_reason, :event_fact::jsonb, :at::timestamptz,
           :at::timestamptz - (SELECT e.at FROM reservation_events e
                  WHERE e.reservation_id = :id ORDER BY e.number DESC LIMIT 1)
    FROM changed
)
SELECT version,
       (SELECT pgmq.send('notifications', jsonb_build_object('reservation_id', reservation_id, 'number', event_count))
        FROM notification_targets t WHERE t.user_id = changed.user_id),
       pg_notify('gpu_dev_event', reservation_id::text),
       (SELECT pg_notify('gpu_dev_turn', 'reservation ' || changed.reservation_id) WHERE :lease_token IS NULL)
FROM changed;

-- What its controller remembers. It is no change of the reservation: the version stays.
-- name: write_memory
UPDATE reservation_records r
SET warned_minutes = :warned_minutes, told_notices = :told_notices, extension_error = :extension_error,
    oom_count = :oom_count, last_oom_at = :last_oom_at, progress = :progress, progress_at = :progress_at,
    stale_since = :stale_since, driven_at = :driven_at, kept_until = :kept_until,
    idle_warned_at = :idle_warned_at, idle_warning = :idle_warning, drain_warning = :drain_warning
WHERE r.reservation_id = :id AND r.version = :version
  AND (:lease_token::uuid IS NULL OR EXISTS (
      SELECT FROM turns WHERE kind = 'reservation' AND key = :id AND lease_token = :lease_token))
RETURNING reservation_id;

-- What is to be said of it, without a change of state.
-- name: write_detail
UPDATE reservation_records SET detail = :detail WHERE reservation_id = :id AND version = :version;

-- Tell those who follow it that something of it was written.
-- name: announce
SELECT pg_notify('gpu_dev_event', :id::text);

-- Its members, by rank; the addresses and keys of those that do not answer yet are null and empty.
-- name: write_members
WITH gone AS (
    DELETE FROM reservation_members WHERE reservation_id = :id AND rank >= cardinality(:nodes::text[])
)
INSERT INTO reservation_members (reservation_id, rank, node_name, host, port, host_keys)
SELECT :id::uuid, m.rank - 1, m.node, m.host, m.port, string_to_array(m.keys, E'\n')
FROM unnest(:nodes, :hosts::text[], :ports::integer[], :keys::text[]) WITH ORDINALITY AS m (node, host, port, keys, rank)
ON CONFLICT (reservation_id, rank) DO UPDATE
SET node_name = excluded.node_name, host = excluded.host, port = excluded.port, host_keys = excluded.host_keys;

-- What is requested again: other GPUs, or the time that is left. It is counted with the others of its type.
-- name: write_spec
WITH before AS (
    SELECT user_id, gpu_type FROM reservation_records WHERE reservation_id = :id AND gpu_type <> :gpu_type::text
), counted AS (
    INSERT INTO reservation_counts AS known (user_id, gpu_type, slot, counted)
    SELECT user_id, gpu_type, pg_backend_pid() % 16, -1 FROM before
    UNION ALL
    SELECT user_id, :gpu_type, pg_backend_pid() % 16, 1 FROM before
    ON CONFLICT (user_id, gpu_type, slot) DO UPDATE SET counted = known.counted + excluded.counted
)
UPDATE reservation_records
SET gpu_type = :gpu_type, gpu_count = :gpu_count, node_count = :node_count, node_labels = :node_labels,
    duration = :duration, start_at = :start_at, warning = :warning, requested_at = :requested_at,
    stopped_at = :stopped_at
WHERE reservation_id = :id;

-- A run is over, though the reservation is not: what it used, and nothing is known of the use of the next one.
-- name: end_run
WITH ended AS (
    INSERT INTO reservation_runs (reservation_id, user_id, gpu_type, gpu_count, requested_at, launched_at,
                                  expires_at, ended_at)
    VALUES (:id, :user_id, :gpu_type, :gpu_count, :requested_at, :launched_at, :expires_at, :ended_at)
)
UPDATE reservation_records
SET used = :used, stopped_at = :ended_at, usage_at = NULL, idle_since = NULL, idle_words = NULL
WHERE reservation_id = :id;

-- The volume that is its home, once its server is there.
-- name: write_volume
UPDATE reservation_records SET volume_id = :volume_id WHERE reservation_id = :id;

-- What became of its command.
-- name: write_outcome
UPDATE reservation_records SET outcome = :outcome, exit_code = :exit_code WHERE reservation_id = :id;

-- It does not wait any more, so there is nothing to foresee.
-- name: clear_forecast
UPDATE reservation_records
SET queue_position = NULL, estimated_start_at = NULL, planned_nodes = '{}', likely_from = NULL, likely_to = NULL
WHERE reservation_id = :id;

-- It starts now: by that its first promise is judged.
-- name: start_forecast
UPDATE forecasts SET started_at = :at WHERE reservation_id = :id AND started_at IS NULL;

-- The disk of a reservation that has no server any more has something to do.
-- name: wake_disk
WITH due AS (
    UPDATE turns SET asked = asked + 1
    FROM disks WHERE disks.reservation_id = :id AND turns.kind = 'disk' AND turns.key = disks.disk_id
    RETURNING disks.disk_id
)
SELECT pg_notify('gpu_dev_turn', 'disk ' || disk_id) FROM due;

-- Those of these reservations that are not cleaned up.
-- name: list_unfinished
SELECT reservation_id FROM reservation_records WHERE reservation_id = ANY (:ids::uuid[]) AND cleaned_at IS NULL;
