-- name: list_of
SELECT key_prefix, created_at, expires_at, last_used_at, is_active AND expires_at > $3 AS is_active,
       key_hash = $2 AS is_current
FROM api_keys
WHERE user_id = $1
ORDER BY created_at DESC, key_id DESC
LIMIT 100;

-- name: end_rotated
UPDATE api_keys SET expires_at = least(expires_at, $3), rotated_at = $4
WHERE user_id = $1 AND key_hash = $2 AND is_active AND expires_at > $4 AND rotated_at IS NULL
RETURNING login_ends_at;

-- name: has_successor
SELECT EXISTS (SELECT FROM api_keys
               WHERE user_id = $1 AND key_hash = $2 AND is_active AND expires_at > $3 AND rotated_at IS NOT NULL);

-- name: list_with_prefix
SELECT key_id, is_active FROM api_keys WHERE user_id = $1 AND key_prefix = $2 FOR UPDATE;

-- name: revoke
WITH revoked AS (
    UPDATE api_keys SET is_active = false WHERE key_id = $1 RETURNING user_id
)
SELECT pg_notify('gpu_dev_keys', user_id::text) FROM revoked;

-- Keys that are not revoked, of users who may come in, and of logins that have not ended. A key that has merely
-- expired is among them: what was opened with it lasts as long as the login.
-- name: list_standing
SELECT k.key_hash FROM api_keys k JOIN api_users u USING (user_id)
WHERE k.key_hash = ANY ($1::bytea[]) AND k.is_active AND u.is_active AND k.login_ends_at > $2;

-- name: note_uses
UPDATE api_keys SET last_used_at = greatest(last_used_at, u.at)
FROM unnest($1::bytea[], $2::timestamptz[]) AS u (key_hash, at)
WHERE api_keys.key_hash = u.key_hash;
