-- The user with an AWS identity, created at its first login; no row: the username belongs to another.
-- name: admit
INSERT INTO api_users AS known (username, aws_account, aws_role, aws_name, aws_arn)
VALUES (:username, :account, :role, :name, :arn)
ON CONFLICT (username) DO UPDATE SET aws_arn = excluded.aws_arn
WHERE (known.aws_account, known.aws_role, known.aws_name) = (:account, :role, :name)
RETURNING user_id, username, is_active;

-- The ARN with which a user logged in last.
-- name: find_arn
SELECT aws_arn FROM api_users WHERE user_id = :user_id;
