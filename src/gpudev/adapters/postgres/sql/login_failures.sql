-- Note a failed login.
-- name: count
INSERT INTO login_failures (origin, at) VALUES (:origin, :at);

-- Delete failures that do not count any more.
-- name: forget_old
DELETE FROM login_failures WHERE at < :before;

-- The latest failure before which as many came as are allowed.
-- name: find_blocking
SELECT at FROM login_failures WHERE origin = :origin AND at > :since
ORDER BY at DESC
OFFSET :allowed
LIMIT 1;
