-- A login has an end that no key outlives, however often it is rotated. What was issued before there was such an end
-- ends when its key does. The default is for a process of an older version that still issues keys during an upgrade.
ALTER TABLE api_keys
    ADD COLUMN login_ends_at timestamptz,
    ADD COLUMN rotated_at timestamptz;
UPDATE api_keys SET login_ends_at = expires_at;
ALTER TABLE api_keys
    ALTER COLUMN login_ends_at SET DEFAULT now() + interval '24 hours',
    ALTER COLUMN login_ends_at SET NOT NULL;
COMMENT ON COLUMN api_keys.login_ends_at IS 'End of the login that this key and those before it began with';
COMMENT ON COLUMN api_keys.rotated_at IS 'When its one successor was issued; null: it has none';

-- Who a user is, as one text: admins are named by it. A username alone may belong to anybody who came first.
CREATE OR REPLACE VIEW callers AS
SELECT k.key_hash, k.expires_at, u.user_id, u.username, u.is_active,
       CASE WHEN u.aws_account IS NULL THEN 'local:' || u.username
            ELSE 'aws:' || u.aws_account || '/' || u.aws_role || '/' || u.aws_name END AS identity
FROM api_keys k JOIN api_users u USING (user_id)
WHERE k.is_active;
