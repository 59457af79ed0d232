-- The user with a name, created if new; no row: the name belongs to an AWS identity.
-- name: upsert
INSERT INTO api_users (username) VALUES (:username)
ON CONFLICT (username) DO UPDATE SET username = excluded.username
WHERE api_users.aws_account IS NULL
RETURNING api_users.user_id, api_users.username, api_users.is_active;

-- The user to whom a valid key belongs.
-- name: find_by_key
SELECT user_id, username, is_active, identity FROM callers WHERE key_hash = :key_hash AND expires_at > :now;

-- Issue a key.
-- name: add_key
WITH added AS (
    INSERT INTO api_keys (user_id, key_hash, key_prefix, expires_at, login_ends_at)
    VALUES (:user_id, :key_hash, :prefix, :expires_at, :login_ends_at)
    RETURNING key_id
)
INSERT INTO audit_entries (username, action, target, address, outcome, detail)
SELECT entry.* FROM added, (
-- include: audit.entries
) entry;

-- Revoke the keys of everybody.
-- name: revoke_keys
WITH revoked AS (
    UPDATE api_keys SET is_active = false WHERE is_active RETURNING key_id
), audited AS (
    INSERT INTO audit_entries (username, action, target, address, outcome, detail)
    SELECT entry.* FROM (
    -- include: audit.entries
    ) entry WHERE EXISTS (SELECT FROM revoked)
)
SELECT pg_notify('gpu_dev_keys', '') WHERE EXISTS (SELECT FROM revoked);

-- Use up a proof of identity: it is valid once.
-- name: use_proof
INSERT INTO used_proofs (proof, expires_at) VALUES (:proof, :expires_at) ON CONFLICT DO NOTHING RETURNING true;

-- Delete proofs that are too old to be accepted anyway.
-- name: forget_old_proofs
DELETE FROM used_proofs WHERE expires_at < :now;

-- The user with a name.
-- name: find_by_name
SELECT user_id, username, is_active FROM api_users WHERE username = :username;

-- All users, with their last use and their live reservations.
-- name: list_all
SELECT u.user_id, u.username, u.is_active, u.created_at,
       (SELECT max(k.last_used_at) FROM api_keys k WHERE k.user_id = u.user_id) AS last_used_at,
       (SELECT count(*) FROM reservation_records r
        WHERE r.user_id = u.user_id AND r.status IN ('pending', 'queued', 'preparing', 'active', 'stopped'))
           AS live_reservations
FROM api_users u
ORDER BY u.username;

-- Enable or disable a user. A disabled user's keys end with it, and do not come back when it is enabled.
-- name: set_active
WITH changed AS (
    UPDATE api_users SET is_active = :is_active WHERE username = :username RETURNING user_id, username, is_active
), revoked AS (
    UPDATE api_keys SET is_active = false
    FROM changed
    WHERE api_keys.user_id = changed.user_id AND api_keys.is_active AND NOT changed.is_active
), audited AS (
    INSERT INTO audit_entries (username, action, target, address, outcome, detail)
    SELECT entry.* FROM changed, (
    -- include: audit.entries
    ) entry
)
SELECT user_id, username, is_active, pg_notify('gpu_dev_keys', user_id::text) FROM changed;
