-- The keys of a GitHub user as they were read last.
-- name: find
SELECT public_keys, fetched_at FROM github_keys WHERE github_user = :github_user;

-- Keep the keys of a GitHub user, unless newer ones are known.
-- name: keep
INSERT INTO github_keys (github_user, public_keys, fetched_at) VALUES (:github_user, :public_keys, :fetched_at)
ON CONFLICT (github_user) DO UPDATE SET public_keys = excluded.public_keys, fetched_at = excluded.fetched_at
WHERE github_keys.fetched_at <= excluded.fetched_at;
