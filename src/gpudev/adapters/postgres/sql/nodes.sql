-- All nodes. One that is drained and not part of the cluster any more is there without slots.
-- name: list_all
SELECT coalesce(n.name, d.node_name) AS name, coalesce(n.gpu_type, d.gpu_type) AS gpu_type, n.slots,
       n.is_schedulable, d.node_name IS NOT NULL AS is_drained, d.reason, d.drained_by, d.drained_at, d.emptied_at
FROM (SELECT t.gpu_type, known.*
      FROM gpu_types t
      CROSS JOIN jsonb_to_recordset(t.nodes) AS known (name text, slots integer, is_schedulable boolean)
      WHERE t.is_active) n
FULL JOIN drains d ON d.node_name = n.name
ORDER BY 2, 1;

-- The reservations that hold room on nodes.
-- name: list_holders
SELECT * FROM reservation_rows
WHERE cleaned_at IS NULL AND member_node IS NOT NULL
ORDER BY expires_at NULLS LAST, reservation_id;

-- The nodes that are being drained.
-- name: list_drains
SELECT node_name, gpu_type, reason, emptied_at IS NOT NULL AS is_empty FROM drains ORDER BY node_name;

-- Drain a node. Once more is the same drain, but for another reason.
-- name: drain
INSERT INTO drains (node_name, gpu_type, reason, drained_by, drained_at)
VALUES (:node, :gpu_type, :reason, :drained_by, :now)
ON CONFLICT (node_name) DO UPDATE SET reason = excluded.reason
WHERE excluded.reason NOT IN ('', drains.reason)
RETURNING true;

-- End a drain.
-- name: undrain
DELETE FROM drains WHERE node_name = :node RETURNING true;

-- Give those on a node a turn. The new version makes every turn in flight stale, so that none misses the drain.
-- name: wake_holders
WITH noticed AS (
    UPDATE reservation_records SET version = version + 1
    WHERE cleaned_at IS NULL AND status IN ('preparing', 'active')
      AND reservation_id IN (SELECT reservation_id FROM reservation_members WHERE node_name = :node)
    RETURNING reservation_id
), due AS (
    UPDATE turns SET asked = asked + 1
    FROM noticed WHERE turns.kind = 'reservation' AND turns.key = noticed.reservation_id
)
SELECT pg_notify('gpu_dev_turn', 'reservation ' || reservation_id) FROM noticed;

-- Note the drained nodes on which nothing runs any more.
-- name: set_emptied
UPDATE drains SET emptied_at = :now WHERE node_name = ANY (:nodes::text[]) AND emptied_at IS NULL
RETURNING node_name;

-- Note the nodes of a type, if they have changed.
-- name: set_nodes
UPDATE gpu_types SET nodes = :nodes WHERE gpu_type = :gpu_type AND nodes IS DISTINCT FROM :nodes;
