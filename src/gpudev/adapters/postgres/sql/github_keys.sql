-- name: find
SELECT public_keys, fetched_at FROM github_keys WHERE github_user = $1;

-- name: keep
INSERT INTO github_keys (github_user, public_keys, fetched_at) VALUES ($1, $2, $3)
ON CONFLICT (github_user) DO UPDATE SET public_keys = excluded.public_keys, fetched_at = excluded.fetched_at
WHERE github_keys.fetched_at <= excluded.fetched_at;
