-- Nodes that an admin takes out of service: nothing new goes there, and who is there stays until the end. It is a
-- state of ours, beside what the cluster says of its nodes, so that every backend has it and no right is needed.
CREATE TABLE drains (
    node_name   text PRIMARY KEY,
    gpu_type    text NOT NULL,
    reason      text NOT NULL,
    drained_by  text NOT NULL,
    drained_at  timestamptz NOT NULL,
    emptied_at  timestamptz
);
COMMENT ON TABLE drains IS 'Nodes that are being taken out of service; one that is not here is as the cluster says';
COMMENT ON COLUMN drains.emptied_at IS 'When the last reservation there had ended; null: some hold room';

-- All nodes as admission saw them last, for those who cannot ask the cluster.
ALTER TABLE gpu_types ADD COLUMN nodes jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN gpu_types.nodes IS 'Nodes of this type: name, slots, and whether the cluster itself would place there';

-- What the people on a dev server were last told of the drain of its nodes.
ALTER TABLE reservations ADD COLUMN drain_warning text NOT NULL DEFAULT '';
COMMENT ON COLUMN reservations.drain_warning IS 'As it was told; empty: its nodes stay in service';

ALTER TABLE reservation_events
    DROP CONSTRAINT reservation_events_kind,
    ADD CONSTRAINT reservation_events_kind CHECK (kind IN (
        'submitted', 'queued', 'placed', 'progress', 'requeued', 'replanned', 'active', 'warning', 'warned',
        'extended', 'extension_refused', 'idle_warned', 'idle_over', 'kept', 'out_of_memory', 'node_leaves',
        'node_stays', 'expired', 'cancelled', 'failed', 'cleaned'));

CREATE OR REPLACE VIEW reservation_rows AS
SELECT r.reservation_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count, r.duration, r.created_at,
       r.status, r.reason, r.detail, r.env_vars, r.ssh_public_keys, r.cli_version, r.node_name, r.node_ip,
       r.node_port, r.ssh_host_keys, r.queue_position, r.estimated_start_at, r.last_queue_update, r.placed_at,
       r.launched_at, r.expires_at, r.reservation_ended, r.cancelled_at, r.cleaned_at, r.last_updated,
       r.version, r.github_user, r.warning, r.node_count, r.other_members, r.warned_minutes, r.extension_error,
       r.oom_count, r.last_oom_at, r.told_notices, r.progress, r.progress_at, r.stale_since, r.driven_at,
       r.kept_until, r.idle_warned_at, r.idle_warning, r.usage_at, r.idle_since, r.idle_words, r.image,
       r.port_slot, r.disk_id, r.disk_name, r.ebs_volume_id, r.planned_nodes, r.start_at, r.likely_from,
       r.likely_to, r.node_labels, r.drain_warning
FROM reservations r JOIN api_users u USING (user_id);

CREATE OR REPLACE VIEW listed_rows AS
SELECT reservation_id, user_id, username, name, gpu_type, gpu_count, duration, created_at, status, reason, detail,
       cli_version, node_name, node_ip, node_port, ssh_host_keys, queue_position, estimated_start_at, launched_at,
       expires_at, reservation_ended, last_updated, version, github_user, warning, node_count, other_members,
       warned_minutes, extension_error, oom_count, last_oom_at, kept_until, idle_warned_at, idle_warning,
       disk_id, disk_name, ebs_volume_id, start_at, likely_from, likely_to, node_labels, drain_warning
FROM reservation_rows;
