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
