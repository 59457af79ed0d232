-- name: forget_old_challenges
DELETE FROM github_challenges WHERE expires_at < $1;

-- name: add_challenge
INSERT INTO github_challenges (challenge_hash, user_id, github_user, expires_at) VALUES ($1, $2, $3, $4);

-- name: take_challenge
DELETE FROM github_challenges WHERE challenge_hash = $1 AND user_id = $2 AND expires_at > $3
RETURNING github_user;

-- name: find
SELECT github_user, github_proved_at FROM api_users WHERE user_id = $1 AND github_user IS NOT NULL;

-- name: bind
WITH bound AS (
    UPDATE api_users SET github_user = $2, github_proved_at = $3 WHERE user_id = $1 RETURNING user_id
)
SELECT write_audit($4::jsonb) FROM bound;
