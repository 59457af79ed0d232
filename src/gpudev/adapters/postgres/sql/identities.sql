-- name: admit
INSERT INTO api_users AS known (username, aws_account, aws_role, aws_name, aws_arn)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (username) DO UPDATE SET aws_arn = excluded.aws_arn
WHERE (known.aws_account, known.aws_role, known.aws_name) = ($2, $3, $4)
RETURNING user_id, username, is_active;

-- name: find_arn
SELECT aws_arn FROM api_users WHERE user_id = $1;
