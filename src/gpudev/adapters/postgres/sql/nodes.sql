-- A node that is drained and not part of the cluster any more is there without slots.
-- name: list_all
SELECT coalesce(n.name, d.node_name) AS name, coalesce(n.gpu_type, d.gpu_type) AS gpu_type, n.slots,
       n.is_schedulable, d.node_name IS NOT NULL AS is_drained, d.reason, d.drained_by, d.drained_at, d.emptied_at
FROM (SELECT t.gpu_type, known.*
      FROM gpu_types t
      CROSS JOIN jsonb_to_recordset(t.nodes) AS known (name text, slots integer, is_schedulable boolean)
      WHERE t.is_active) n
FULL JOIN drains d ON d.node_name = n.name
ORDER BY 2, 1;

-- name: list_holders
SELECT * FROM reservation_rows
WHERE cleaned_at IS NULL AND member_nodes IS NOT NULL
ORDER BY expires_at NULLS LAST, reservation_id;

-- name: list_drains
SELECT node_name, gpu_type, reason, emptied_at IS NOT NULL AS is_empty FROM drains ORDER BY node_name;

-- Again is the same drain, but for another reason.
-- name: drain
INSERT INTO drains (node_name, gpu_type, reason, drained_by, drained_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (node_name) DO UPDATE SET reason = excluded.reason
WHERE excluded.reason NOT IN ('', drains.reason)
RETURNING true;

-- name: undrain
DELETE FROM drains WHERE node_name = $1 RETURNING true;

-- The new version makes every turn in flight stale, so that none goes by without having seen the drain.
-- name: wake_holders
WITH noticed AS (
    UPDATE reservation_records SET version = version + 1
    WHERE cleaned_at IS NULL AND status IN ('preparing', 'active')
      AND reservation_id IN (SELECT reservation_id FROM reservation_members WHERE node_name = $1)
    RETURNING reservation_id
), due AS (
    UPDATE turns SET asked = asked + 1
    FROM noticed WHERE turns.kind = 'reservation' AND turns.key = noticed.reservation_id
)
SELECT pg_notify('gpu_dev_turn', 'reservation ' || reservation_id) FROM noticed;

-- name: set_emptied
UPDATE drains SET emptied_at = $2 WHERE node_name = ANY ($1::text[]) AND emptied_at IS NULL
RETURNING node_name;

-- name: set_nodes
UPDATE gpu_types SET nodes = $2 WHERE gpu_type = $1 AND nodes IS DISTINCT FROM $2;
