-- name: upsert
INSERT INTO api_users (username) VALUES ($1)
ON CONFLICT (username) DO UPDATE SET username = excluded.username
WHERE api_users.aws_account IS NULL
RETURNING api_users.user_id, api_users.username, api_users.is_active;

-- name: find_by_key
SELECT user_id, username, is_active, identity FROM callers WHERE key_hash = $1 AND expires_at > $2;

-- name: add_key
WITH added AS (
    INSERT INTO api_keys (user_id, key_hash, key_prefix, expires_at, login_ends_at) VALUES ($1, $2, $3, $4, $5)
    RETURNING key_id
)
SELECT write_audit($6::jsonb) FROM added;

-- name: revoke_keys
WITH revoked AS (
    UPDATE api_keys SET is_active = false WHERE is_active RETURNING key_id
)
SELECT write_audit($1::jsonb), pg_notify('gpu_dev_keys', '') WHERE EXISTS (SELECT FROM revoked);

-- name: use_proof
INSERT INTO used_proofs (proof, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true;

-- name: forget_old_proofs
DELETE FROM used_proofs WHERE expires_at < $1;

-- name: find_by_name
SELECT user_id, username, is_active FROM api_users WHERE username = $1;

-- name: list_all
SELECT u.user_id, u.username, u.is_active, u.created_at,
       (SELECT max(k.last_used_at) FROM api_keys k WHERE k.user_id = u.user_id) AS last_used_at,
       (SELECT count(*) FROM reservation_records r
        WHERE r.user_id = u.user_id AND r.status IN ('pending', 'queued', 'preparing', 'active')) AS live_reservations
FROM api_users u
ORDER BY u.username;

-- A disabled user's keys end with it, and do not come back when it is enabled.
-- name: set_active
WITH changed AS (
    UPDATE api_users SET is_active = $2 WHERE username = $1 RETURNING user_id, username, is_active
), revoked AS (
    UPDATE api_keys SET is_active = false
    FROM changed
    WHERE api_keys.user_id = changed.user_id AND api_keys.is_active AND NOT changed.is_active
)
SELECT user_id, username, is_active, write_audit($3::jsonb), pg_notify('gpu_dev_keys', user_id::text)
FROM changed;
