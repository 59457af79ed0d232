-- How the command of `gpu-dev submit` ended, and the end of what it wrote, for when its dev server is gone.
ALTER TABLE reservations
    ADD COLUMN outcome text CONSTRAINT reservations_outcome
        CHECK (outcome IN ('succeeded', 'failed', 'stopped', 'timed_out')),
    ADD COLUMN exit_code integer CONSTRAINT reservations_exit_code CHECK (exit_code BETWEEN 0 AND 255),
    DROP CONSTRAINT reservations_reason,
    ADD CONSTRAINT reservations_reason CHECK (reason IN (
        'waiting_for_capacity', 'waiting_in_line', 'no_nodes', 'waiting_for_quota', 'booked', 'disk_busy',
        'placement_lost', 'time_is_up', 'went_idle', 'cancelled_by_user', 'cancelled_by_admin',
        'command_finished', 'start_failed', 'start_timed_out', 'start_stalled', 'queue_stalled',
        'queued_too_long', 'server_failed', 'image_unavailable', 'pod_deleted', 'node_lost', 'evicted',
        'out_of_memory', 'disk_failed', 'internal_error'));
COMMENT ON COLUMN reservations.outcome IS 'What became of its command; null: it has none, or it has not ended';
COMMENT ON COLUMN reservations.exit_code IS 'Of its command; null: not known';

CREATE TABLE job_outputs (
    reservation_id  uuid PRIMARY KEY REFERENCES reservations ON DELETE CASCADE,
    output          text NOT NULL
);
COMMENT ON TABLE job_outputs IS 'The end of what the command of a reservation wrote, once the reservation has ended';

ALTER TABLE reservation_events
    DROP CONSTRAINT reservation_events_kind,
    ADD CONSTRAINT reservation_events_kind CHECK (kind IN (
        'submitted', 'queued', 'placed', 'progress', 'requeued', 'replanned', 'active', 'warning', 'warned',
        'extended', 'extension_refused', 'idle_warned', 'idle_over', 'kept', 'out_of_memory', 'node_leaves',
        'node_stays', 'finished', 'expired', 'cancelled', 'failed', 'cleaned'));

CREATE OR REPLACE VIEW reservation_rows AS
SELECT r.reservation_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count, r.duration, r.created_at,
       r.status, r.reason, r.detail, r.env_vars, r.ssh_public_keys, r.cli_version, r.node_name, r.node_ip,
       r.node_port, r.ssh_host_keys, r.queue_position, r.estimated_start_at, r.last_queue_update, r.placed_at,
       r.launched_at, r.expires_at, r.reservation_ended, r.cancelled_at, r.cleaned_at, r.last_updated,
       r.version, r.github_user, r.warning, r.node_count, r.other_members, r.warned_minutes, r.extension_error,
       r.oom_count, r.last_oom_at, r.told_notices, r.progress, r.progress_at, r.stale_since, r.driven_at,
       r.kept_until, r.idle_warned_at, r.idle_warning, r.usage_at, r.idle_since, r.idle_words, r.image,
       r.port_slot, r.disk_id, r.disk_name, r.ebs_volume_id, r.planned_nodes, r.start_at, r.likely_from,
       r.likely_to, r.node_labels, r.drain_warning, r.outcome, r.exit_code
FROM reservations r JOIN api_users u USING (user_id);

CREATE OR REPLACE VIEW listed_rows AS
SELECT reservation_id, user_id, username, name, gpu_type, gpu_count, duration, created_at, status, reason, detail,
       cli_version, node_name, node_ip, node_port, ssh_host_keys, queue_position, estimated_start_at, launched_at,
       expires_at, reservation_ended, last_updated, version, github_user, warning, node_count, other_members,
       warned_minutes, extension_error, oom_count, last_oom_at, kept_until, idle_warned_at, idle_warning,
       disk_id, disk_name, ebs_volume_id, start_at, likely_from, likely_to, node_labels, drain_warning,
       outcome, exit_code
FROM reservation_rows;
