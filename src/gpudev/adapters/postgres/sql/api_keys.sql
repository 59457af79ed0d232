-- name: list_of
SELECT key_prefix, created_at, expires_at, last_used_at, is_active AND expires_at > $3 AS is_active,
       key_hash = $2 AS is_current
FROM api_keys
WHERE user_id = $1
ORDER BY created_at DESC, key_id DESC
LIMIT 100;

-- name: end_rotated
UPDATE api_keys SET expires_at = least(expires_at, $3)
WHERE user_id = $1 AND key_hash = $2 AND is_active AND expires_at > $4
RETURNING true;

-- name: list_with_prefix
SELECT key_id, is_active FROM api_keys WHERE user_id = $1 AND key_prefix = $2 FOR UPDATE;

-- name: revoke
UPDATE api_keys SET is_active = false WHERE key_id = $1;

-- name: note_uses
UPDATE api_keys SET last_used_at = greatest(last_used_at, u.at)
FROM unnest($1::bytea[], $2::timestamptz[]) AS u (key_hash, at)
WHERE api_keys.key_hash = u.key_hash;
