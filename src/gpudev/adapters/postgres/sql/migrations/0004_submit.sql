-- The keys of GitHub users as they were read last, for when GitHub does not answer.
CREATE TABLE github_keys (
    github_user  text PRIMARY KEY,
    public_keys  text[] NOT NULL,
    fetched_at   timestamptz NOT NULL
);
COMMENT ON COLUMN github_keys.github_user IS 'In lower case: GitHub does not tell cases apart';

ALTER TABLE reservations
    ADD COLUMN github_user text NOT NULL DEFAULT '',
    ADD COLUMN warning text NOT NULL DEFAULT '';

-- Who waits, for the listing of the queue: it is read often, and most reservations have long ended.
CREATE INDEX reservations_waiting ON reservations (gpu_type, created_at) WHERE status IN ('pending', 'queued');

CREATE OR REPLACE VIEW reservation_rows AS
SELECT r.reservation_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count, r.duration, r.created_at,
       r.status, r.reason, r.detail, r.env_vars, r.ssh_public_keys, r.cli_version, r.node_name, r.node_ip,
       r.node_port, r.ssh_host_keys, r.queue_position, r.estimated_start_at, r.last_queue_update, r.placed_at,
       r.launched_at, r.expires_at, r.reservation_ended, r.cancelled_at, r.cleaned_at, r.last_updated,
       r.version, r.github_user, r.warning
FROM reservations r JOIN api_users u USING (user_id);
