-- name: upsert
INSERT INTO api_users (username) VALUES ($1)
ON CONFLICT (username) DO UPDATE SET username = excluded.username
WHERE api_users.aws_account IS NULL
RETURNING api_users.user_id, api_users.username, api_users.is_active;

-- name: find_by_key
SELECT u.user_id, u.username, u.is_active
FROM api_keys k JOIN api_users u USING (user_id)
WHERE k.key_hash = $1 AND k.is_active AND k.expires_at > $2;

-- name: add_key
INSERT INTO api_keys (user_id, key_hash, key_prefix, expires_at) VALUES ($1, $2, $3, $4);

-- name: revoke_keys
UPDATE api_keys SET is_active = false WHERE is_active;

-- name: use_proof
INSERT INTO used_proofs (proof, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true;

-- name: forget_old_proofs
DELETE FROM used_proofs WHERE expires_at < $1;
