-- Lease an item to one process, for a while of the database's clock. What this process leased before, it may lease
-- again. Included in the claim of each kind, which reads the item in the same snapshot.
-- name: claim
UPDATE turns SET lease_token = :lease_token, lease_until = clock_timestamp() + :lease::interval
WHERE kind = :kind AND key = :id
  AND (lease_until IS NULL OR lease_until <= clock_timestamp() OR lease_token = :lease_token)
RETURNING key, asked, defects;

-- End a turn. The turns that were asked for before the claim are settled; one that was asked for since then is due.
-- name: end
UPDATE turns
SET lease_token = NULL, lease_until = NULL, settled = :settled, next_turn_at = :next_turn_at, defects = :defects
WHERE kind = :kind AND key = :id AND lease_token = :lease_token;

-- End all leases of a kind, and make due what was to come soon.
-- name: take_over
UPDATE turns SET lease_token = NULL, lease_until = NULL, next_turn_at = least(next_turn_at, :now::timestamptz)
WHERE kind = :kind AND (lease_token IS NOT NULL OR next_turn_at <= :now::timestamptz + :within::interval);

-- What is due and not leased.
-- name: list_due
SELECT key FROM turns
WHERE kind = :kind AND (asked > settled OR next_turn_at <= :now)
  AND (lease_until IS NULL OR lease_until <= clock_timestamp())
ORDER BY next_turn_at NULLS FIRST
LIMIT :limit;

-- The next moment at which something becomes due.
-- name: find_next
SELECT min(at)
FROM (SELECT greatest(next_turn_at, lease_until) AS at FROM turns WHERE kind = :kind AND next_turn_at IS NOT NULL
      UNION ALL
      SELECT lease_until FROM turns WHERE kind = :kind AND asked > settled) due
WHERE at > :after;

-- Whether there is such an item; a turn may be left of one whose row was lost.
-- name: is_known
SELECT EXISTS (SELECT FROM reservation_records WHERE :kind::text = 'reservation' AND reservation_id = :id::uuid)
    OR EXISTS (SELECT FROM disks WHERE :kind::text = 'disk' AND disk_id = :id::uuid);

-- Send a dead letter about an item on which our code fails, in place of its messages.
-- name: send_dead_letter
SELECT pgmq.send(:queue::text || '_dead', jsonb_build_object(:field::text, :id::text),
                 jsonb_build_object('error', :error::text)),
       pgmq.archive(:queue::text, :message_ids::bigint[]);
