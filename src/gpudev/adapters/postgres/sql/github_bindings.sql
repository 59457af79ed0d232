-- Delete challenges that have expired.
-- name: forget_old_challenges
DELETE FROM github_challenges WHERE expires_at < :now;

-- Keep a challenge until it is signed or expires.
-- name: add_challenge
INSERT INTO github_challenges (challenge_hash, user_id, github_user, expires_at)
VALUES (:challenge_hash, :user_id, :github_user, :expires_at);

-- Use up a challenge: it is valid once.
-- name: take_challenge
DELETE FROM github_challenges WHERE challenge_hash = :challenge_hash AND user_id = :user_id AND expires_at > :now
RETURNING github_user;

-- The GitHub user that a user has proved to be.
-- name: find
SELECT github_user, github_proved_at FROM api_users WHERE user_id = :user_id AND github_user IS NOT NULL;

-- Note the GitHub user that a user has proved to be.
-- name: bind
WITH bound AS (
    UPDATE api_users SET github_user = :github_user, github_proved_at = :proved_at
    WHERE user_id = :user_id
    RETURNING user_id
)
INSERT INTO audit_entries (username, action, target, address, outcome, detail)
SELECT entry.* FROM bound, (
-- include: audit.entries
) entry;
