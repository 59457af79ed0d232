-- Which GitHub user a user has proved to be, and when. Two users are never the same one.
ALTER TABLE api_users
    ADD COLUMN github_user      text CONSTRAINT api_users_github_user UNIQUE,
    ADD COLUMN github_proved_at timestamptz,
    ADD CONSTRAINT api_users_github CHECK (num_nulls(github_user, github_proved_at) IN (0, 2));
COMMENT ON COLUMN api_users.github_user IS 'In lower case: GitHub does not tell cases apart';

-- Challenges that were given and not signed yet, by their hash; each is for one user and one GitHub user.
CREATE TABLE github_challenges (
    challenge_hash  bytea PRIMARY KEY,
    user_id         integer NOT NULL REFERENCES api_users,
    github_user     text NOT NULL,
    expires_at      timestamptz NOT NULL
);

-- A reservation that somebody else than its owner has cancelled says so.
ALTER TABLE operations ADD COLUMN is_by_admin boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN operations.is_by_admin IS 'Requested for the owner by somebody else';
ALTER TABLE reservations DROP CONSTRAINT reservations_reason;
ALTER TABLE reservations ADD CONSTRAINT reservations_reason CHECK (reason IN (
    'waiting_for_capacity', 'waiting_in_line', 'no_nodes', 'placement_lost', 'time_is_up', 'cancelled_by_user',
    'cancelled_by_admin', 'start_failed', 'start_timed_out', 'server_failed', 'pod_deleted', 'internal_error'));

-- To find the keys that ended long ago.
CREATE INDEX api_keys_end ON api_keys (expires_at);
