-- name: count
INSERT INTO login_failures (origin, at) VALUES ($1, $2);

-- name: forget_old
DELETE FROM login_failures WHERE at < $1;

-- name: find_blocking
SELECT at FROM login_failures WHERE origin = $1 AND at > $2
ORDER BY at DESC
OFFSET $3
LIMIT 1;
