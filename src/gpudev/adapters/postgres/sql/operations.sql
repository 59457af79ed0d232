-- Request an operation. An id that is there already, or that comes at the same moment, is the same request.
-- name: request
WITH requested AS (
    INSERT INTO operations (operation_id, reservation_id, kind, requested_at, is_by_admin, length, not_before,
                            reason)
    VALUES (:id, :reservation_id, :kind, :now, :is_by_admin, :length, :not_before, :reason)
    ON CONFLICT (operation_id) DO NOTHING
    RETURNING reservation_id
), noticed AS (
    UPDATE reservation_records r SET version = r.version + 1
    FROM requested WHERE r.reservation_id = requested.reservation_id
    RETURNING r.reservation_id
), due AS (
    UPDATE turns SET asked = asked + 1
    FROM noticed WHERE turns.kind = 'reservation' AND turns.key = noticed.reservation_id
), audited AS (
    INSERT INTO audit_entries (username, action, target, address, outcome, detail)
    SELECT entry.* FROM noticed, (
    -- include: audit.entries
    ) entry
)
SELECT pgmq.send('gpu_reservations', jsonb_build_object('reservation_id', reservation_id)),
       pg_notify('gpu_dev_messages', 'gpu_reservations')
FROM noticed;

-- What became of operations.
-- name: settle
UPDATE operations SET status = o.status, error = o.error, finished_at = :at
FROM unnest(:ids::uuid[], :statuses::text[], :errors::jsonb[]) AS o (operation_id, status, error)
WHERE operations.operation_id = o.operation_id AND operations.status = 'requested';

-- An operation, of one user or of anybody.
-- name: get
SELECT o.operation_id, o.reservation_id, o.kind, o.status, o.error, o.requested_at, o.finished_at
FROM operations o JOIN reservation_records r USING (reservation_id)
WHERE o.operation_id = :id AND (:user_id::integer IS NULL OR r.user_id = :user_id);
