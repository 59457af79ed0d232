-- Lease an item to one process, for a while of the database's clock. What this process leased before, it may lease
-- again. Included in the claim of each kind, which reads the item in the same snapshot.
-- name: claim
UPDATE turns SET lease_token = $2, lease_until = clock_timestamp() + $3::interval
WHERE kind = $4 AND key = $1
  AND (lease_until IS NULL OR lease_until <= clock_timestamp() OR lease_token = $2)
RETURNING key, asked, defects;

-- The turns that were asked for before the claim are settled; one that was asked for since then is due.
-- name: end
UPDATE turns SET lease_token = NULL, lease_until = NULL, settled = $4, next_turn_at = $5, defects = $6
WHERE kind = $1 AND key = $2 AND lease_token = $3;

-- No lease is anybody's, and what was to come soon comes now.
-- name: take_over
UPDATE turns SET lease_token = NULL, lease_until = NULL, next_turn_at = least(next_turn_at, $2::timestamptz)
WHERE kind = $1 AND (lease_token IS NOT NULL OR next_turn_at <= $2::timestamptz + $3::interval);

-- What is due and not leased.
-- name: list_due
SELECT key FROM turns
WHERE kind = $1 AND (asked > settled OR next_turn_at <= $2)
  AND (lease_until IS NULL OR lease_until <= clock_timestamp())
ORDER BY next_turn_at NULLS FIRST
LIMIT $3;

-- The next moment at which something becomes due.
-- name: find_next
SELECT min(at)
FROM (SELECT greatest(next_turn_at, lease_until) AS at FROM turns WHERE kind = $1 AND next_turn_at IS NOT NULL
      UNION ALL
      SELECT lease_until FROM turns WHERE kind = $1 AND asked > settled) due
WHERE at > $2;

-- Whether there is such an item; a turn may be left of one whose row was lost.
-- name: is_known
SELECT EXISTS (SELECT FROM reservation_records WHERE $1::text = 'reservation' AND reservation_id = $2::uuid)
    OR EXISTS (SELECT FROM disks WHERE $1::text = 'disk' AND disk_id = $2::uuid);

-- A letter about an item on which our code fails, in place of its messages.
-- name: send_dead_letter
SELECT pgmq.send($1::text || '_dead', jsonb_build_object($2::text, $3::text),
                 jsonb_build_object('error', $4::text)),
       pgmq.archive($1::text, $5::bigint[]);
