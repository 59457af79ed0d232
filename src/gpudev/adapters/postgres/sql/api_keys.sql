-- The latest keys of a user, and which of them is the current one.
-- name: list_of
SELECT key_prefix, created_at, expires_at, last_used_at, is_active AND expires_at > :now AS is_active,
       key_hash = :current AS is_current
FROM api_keys
WHERE user_id = :user_id
ORDER BY created_at DESC, key_id DESC
LIMIT 100;

-- Shorten the life of a key that is rotated now, unless it has a successor already.
-- name: end_rotated
UPDATE api_keys SET expires_at = least(expires_at, :ends_at), rotated_at = :now
WHERE user_id = :user_id AND key_hash = :key_hash AND is_active AND expires_at > :now AND rotated_at IS NULL
RETURNING login_ends_at;

-- Whether a key that is still valid was rotated before.
-- name: has_successor
SELECT EXISTS (SELECT FROM api_keys
               WHERE user_id = :user_id AND key_hash = :key_hash AND is_active AND expires_at > :now
                 AND rotated_at IS NOT NULL);

-- The keys of a user that begin with a prefix, locked.
-- name: list_with_prefix
SELECT key_id, is_active FROM api_keys WHERE user_id = :user_id AND key_prefix = :prefix FOR UPDATE;

-- Revoke a key and tell every process.
-- name: revoke
WITH revoked AS (
    UPDATE api_keys SET is_active = false WHERE key_id = :key_id RETURNING user_id
)
SELECT pg_notify('gpu_dev_keys', user_id::text) FROM revoked;

-- Keys that are not revoked, of users who may come in, and of logins that have not ended. A key that has merely
-- expired is among them: what was opened with it lasts as long as the login.
-- name: list_standing
SELECT k.key_hash FROM api_keys k JOIN api_users u USING (user_id)
WHERE k.key_hash = ANY (:key_hashes::bytea[]) AND k.is_active AND u.is_active AND k.login_ends_at > :now;

-- Note when keys were used last.
-- name: note_uses
UPDATE api_keys SET last_used_at = greatest(last_used_at, u.at)
FROM unnest(:key_hashes::bytea[], :times::timestamptz[]) AS u (key_hash, at)
WHERE api_keys.key_hash = u.key_hash;
