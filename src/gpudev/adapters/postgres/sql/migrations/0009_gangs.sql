ALTER TABLE reservations
    ADD COLUMN node_count integer NOT NULL DEFAULT 1 CHECK (node_count >= 1),
    ADD COLUMN other_members jsonb,
    ADD CONSTRAINT reservations_members CHECK (
        CASE WHEN node_name IS NULL THEN other_members IS NULL
             ELSE coalesce(jsonb_array_length(other_members), 0) = node_count - 1 END);
COMMENT ON COLUMN reservations.node_count IS 'How many nodes it takes; more than one is a gang';
COMMENT ON COLUMN reservations.other_members IS
    'Ranks from 1 on, in order: node, address, host_keys; rank 0 has columns of its own, and null stands for no others';

CREATE OR REPLACE VIEW reservation_rows AS
SELECT r.reservation_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count, r.duration, r.created_at,
       r.status, r.reason, r.detail, r.env_vars, r.ssh_public_keys, r.cli_version, r.node_name, r.node_ip,
       r.node_port, r.ssh_host_keys, r.queue_position, r.estimated_start_at, r.last_queue_update, r.placed_at,
       r.launched_at, r.expires_at, r.reservation_ended, r.cancelled_at, r.cleaned_at, r.last_updated,
       r.version, r.github_user, r.warning, r.node_count, r.other_members
FROM reservations r JOIN api_users u USING (user_id);

CREATE OR REPLACE VIEW listed_rows AS
SELECT reservation_id, user_id, username, name, gpu_type, gpu_count, duration, created_at, status, reason, detail,
       cli_version, node_name, node_ip, node_port, ssh_host_keys, queue_position, estimated_start_at, launched_at,
       expires_at, reservation_ended, last_updated, version, github_user, warning, node_count, other_members
FROM reservation_rows;
