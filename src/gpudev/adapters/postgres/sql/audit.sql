-- name: write
SELECT write_audit($1::jsonb);

-- name: list_page
SELECT entry_id, at, username, action, target, address, outcome, detail FROM audit_entries
WHERE ($1::text IS NULL OR username = $1)
  AND ($2::text IS NULL OR action = $2)
  AND ($3::timestamptz IS NULL OR at >= $3)
  AND ($4::timestamptz IS NULL OR at < $4)
  AND ($5::bigint IS NULL OR entry_id < $5)
ORDER BY entry_id DESC
LIMIT $6;

-- Who cannot have the lock does not wait: another process is doing the same work.
-- name: try_lock
SELECT pg_try_advisory_xact_lock(hashtext('gpu-dev audit'), 0);

-- name: find_last_seal
SELECT number, first_id, last_id, entries, known_until, previous_hash, hash FROM audit_seals
ORDER BY number DESC
LIMIT 1;

-- In the order of time, so that after a full batch everything up to its last entry is known.
-- name: list_sealable
SELECT e.entry_id, e.at, e.username, e.action, e.target, e.address, e.outcome, e.detail FROM audit_entries e
WHERE e.at >= $1 AND NOT EXISTS (SELECT FROM audit_digests d WHERE d.entry_id = e.entry_id)
ORDER BY e.at, e.entry_id
LIMIT $2;

-- name: read_clock
SELECT clock_timestamp();

-- name: add_seal
INSERT INTO audit_seals (number, first_id, last_id, entries, known_until, previous_hash, hash)
VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: add_digests
INSERT INTO audit_digests (seal_number, entry_id, digest)
SELECT $1, d.entry_id, d.digest FROM unnest($2::bigint[], $3::bytea[]) AS d (entry_id, digest);

-- name: list_seals
SELECT number, first_id, last_id, entries, known_until, previous_hash, hash FROM audit_seals
WHERE number > $1
ORDER BY number
LIMIT $2;

-- name: list_sealed
SELECT d.entry_id AS sealed_id, d.digest,
       e.entry_id, e.at, e.username, e.action, e.target, e.address, e.outcome, e.detail
FROM audit_digests d LEFT JOIN audit_entries e USING (entry_id)
WHERE d.seal_number = $1
ORDER BY d.entry_id;

-- name: list_unsealed
SELECT e.entry_id, e.at, e.username, e.action, e.target, e.address, e.outcome, e.detail FROM audit_entries e
WHERE NOT EXISTS (SELECT FROM audit_digests d WHERE d.entry_id = e.entry_id)
ORDER BY e.entry_id;
