-- An image of the user's own, and the ready address that goes with a placement.
ALTER TABLE reservations
    ADD COLUMN image     text NOT NULL DEFAULT '',
    ADD COLUMN port_slot text,
    DROP CONSTRAINT reservations_reason,
    ADD CONSTRAINT reservations_reason CHECK (reason IN (
        'waiting_for_capacity', 'waiting_in_line', 'no_nodes', 'placement_lost', 'time_is_up', 'went_idle',
        'cancelled_by_user', 'cancelled_by_admin', 'start_failed', 'start_timed_out', 'start_stalled',
        'queue_stalled', 'queued_too_long', 'server_failed', 'image_unavailable', 'pod_deleted', 'node_lost',
        'evicted', 'out_of_memory', 'internal_error'));
COMMENT ON COLUMN reservations.port_slot IS 'Name of a ready address in the cluster; null: one is made';

-- One address, one reservation; it is taken away before the row is clean.
CREATE UNIQUE INDEX reservations_port_slot ON reservations (port_slot)
    WHERE port_slot IS NOT NULL AND cleaned_at IS NULL;

ALTER TABLE reservation_events
    DROP CONSTRAINT reservation_events_kind,
    ADD CONSTRAINT reservation_events_kind CHECK (kind IN (
        'submitted', 'queued', 'placed', 'progress', 'requeued', 'active', 'warning', 'warned', 'extended',
        'extension_refused', 'idle_warned', 'idle_over', 'kept', 'out_of_memory', 'expired', 'cancelled',
        'failed', 'cleaned'));

CREATE OR REPLACE VIEW reservation_rows AS
SELECT r.reservation_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count, r.duration, r.created_at,
       r.status, r.reason, r.detail, r.env_vars, r.ssh_public_keys, r.cli_version, r.node_name, r.node_ip,
       r.node_port, r.ssh_host_keys, r.queue_position, r.estimated_start_at, r.last_queue_update, r.placed_at,
       r.launched_at, r.expires_at, r.reservation_ended, r.cancelled_at, r.cleaned_at, r.last_updated,
       r.version, r.github_user, r.warning, r.node_count, r.other_members, r.warned_minutes, r.extension_error,
       r.oom_count, r.last_oom_at, r.told_notices, r.progress, r.progress_at, r.stale_since, r.driven_at,
       r.kept_until, r.idle_warned_at, r.idle_warning, r.usage_at, r.idle_since, r.idle_words, r.image, r.port_slot
FROM reservations r JOIN api_users u USING (user_id);
