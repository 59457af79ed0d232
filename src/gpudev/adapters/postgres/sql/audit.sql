-- New entries as rows: included in each statement that writes them beside rows of its own.
-- name: entries
SELECT a.username, a.action, a.target, a.address, a.outcome, a.detail
FROM unnest(:audit_usernames::text[], :audit_actions::text[], :audit_targets::text[], :audit_addresses::text[],
            :audit_outcomes::text[], :audit_details::text[])
    AS a (username, action, target, address, outcome, detail);

-- Append entries.
-- name: write
INSERT INTO audit_entries (username, action, target, address, outcome, detail)
-- include: audit.entries
;

-- A page of entries, the newest first.
-- name: list_page
SELECT entry_id, at, username, action, target, address, outcome, detail FROM audit_entries
WHERE (:username::text IS NULL OR username = :username)
  AND (:action::text IS NULL OR action = :action)
  AND (:since::timestamptz IS NULL OR at >= :since)
  AND (:until::timestamptz IS NULL OR at < :until)
  AND (:before::bigint IS NULL OR entry_id < :before)
ORDER BY entry_id DESC
LIMIT :limit;

-- Lock the work of sealing. Who cannot have the lock does not wait: another process is doing the same work.
-- name: try_lock
SELECT pg_try_advisory_xact_lock(hashtext('gpu-dev audit'), 0);

-- The seal that the next one continues.
-- name: find_last_seal
SELECT number, first_id, last_id, entries, known_until, previous_hash, hash FROM audit_seals
ORDER BY number DESC
LIMIT 1;

-- Entries that no seal covers, in the order of time: after a full batch everything up to its last entry is known.
-- name: list_sealable
SELECT e.entry_id, e.at, e.username, e.action, e.target, e.address, e.outcome, e.detail FROM audit_entries e
WHERE e.at >= :since AND NOT EXISTS (SELECT FROM audit_digests d WHERE d.entry_id = e.entry_id)
ORDER BY e.at, e.entry_id
LIMIT :limit;

-- The time of the database.
-- name: read_clock
SELECT clock_timestamp();

-- Append a seal.
-- name: add_seal
INSERT INTO audit_seals (number, first_id, last_id, entries, known_until, previous_hash, hash)
VALUES (:number, :first_id, :last_id, :entries, :known_until, :previous_hash, :hash);

-- Append the digests of the entries of a seal.
-- name: add_digests
INSERT INTO audit_digests (seal_number, entry_id, digest)
SELECT :seal_number, d.entry_id, d.digest FROM unnest(:entry_ids::bigint[], :digests::bytea[]) AS d (entry_id, digest);

-- A page of seals, in order.
-- name: list_seals
SELECT number, first_id, last_id, entries, known_until, previous_hash, hash FROM audit_seals
WHERE number > :after
ORDER BY number
LIMIT :limit;

-- The digests of a seal, each with its entry if that is still there.
-- name: list_sealed
SELECT d.entry_id AS sealed_id, d.digest,
       e.entry_id, e.at, e.username, e.action, e.target, e.address, e.outcome, e.detail
FROM audit_digests d LEFT JOIN audit_entries e USING (entry_id)
WHERE d.seal_number = :seal_number
ORDER BY d.entry_id;

-- The entries that no seal covers yet.
-- name: list_unsealed
SELECT e.entry_id, e.at, e.username, e.action, e.target, e.address, e.outcome, e.detail FROM audit_entries e
WHERE NOT EXISTS (SELECT FROM audit_digests d WHERE d.entry_id = e.entry_id)
ORDER BY e.entry_id;
