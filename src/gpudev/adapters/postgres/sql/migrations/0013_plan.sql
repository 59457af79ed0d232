-- The kept plan: where room is kept for each request that waits, from its `estimated_start_at` on.
ALTER TABLE reservations
    ADD COLUMN planned_nodes text[] NOT NULL DEFAULT '{}',
    ADD COLUMN start_at      timestamptz;
COMMENT ON COLUMN reservations.planned_nodes IS 'While it waits: where room is kept for it; none: nothing is promised';
COMMENT ON COLUMN reservations.start_at IS 'Booked for this time; null: as soon as there is room';

ALTER TABLE reservations
    DROP CONSTRAINT reservations_reason,
    ADD CONSTRAINT reservations_reason CHECK (reason IN (
        'waiting_for_capacity', 'waiting_in_line', 'no_nodes', 'booked', 'disk_busy', 'placement_lost', 'time_is_up',
        'went_idle', 'cancelled_by_user', 'cancelled_by_admin', 'start_failed', 'start_timed_out',
        'start_stalled', 'queue_stalled', 'queued_too_long', 'server_failed', 'image_unavailable', 'pod_deleted',
        'node_lost', 'evicted', 'out_of_memory', 'disk_failed', 'internal_error'));

ALTER TABLE reservation_events
    DROP CONSTRAINT reservation_events_kind,
    ADD CONSTRAINT reservation_events_kind CHECK (kind IN (
        'submitted', 'queued', 'placed', 'progress', 'requeued', 'replanned', 'active', 'warning', 'warned',
        'extended', 'extension_refused', 'idle_warned', 'idle_over', 'kept', 'out_of_memory', 'expired', 'cancelled',
        'failed', 'cleaned'));

-- When those who wait are likely to start, by what was learned of others; null: too little is known.
ALTER TABLE reservations
    ADD COLUMN likely_from timestamptz,
    ADD COLUMN likely_to   timestamptz,
    ADD CONSTRAINT reservations_likely CHECK (num_nulls(likely_from, likely_to) IN (0, 2));

CREATE OR REPLACE VIEW reservation_rows AS
SELECT r.reservation_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count, r.duration, r.created_at,
       r.status, r.reason, r.detail, r.env_vars, r.ssh_public_keys, r.cli_version, r.node_name, r.node_ip,
       r.node_port, r.ssh_host_keys, r.queue_position, r.estimated_start_at, r.last_queue_update, r.placed_at,
       r.launched_at, r.expires_at, r.reservation_ended, r.cancelled_at, r.cleaned_at, r.last_updated,
       r.version, r.github_user, r.warning, r.node_count, r.other_members, r.warned_minutes, r.extension_error,
       r.oom_count, r.last_oom_at, r.told_notices, r.progress, r.progress_at, r.stale_since, r.driven_at,
       r.kept_until, r.idle_warned_at, r.idle_warning, r.usage_at, r.idle_since, r.idle_words, r.image,
       r.port_slot, r.disk_id, r.disk_name, r.ebs_volume_id, r.planned_nodes, r.start_at, r.likely_from, r.likely_to
FROM reservations r JOIN api_users u USING (user_id);

CREATE OR REPLACE VIEW listed_rows AS
SELECT reservation_id, user_id, username, name, gpu_type, gpu_count, duration, created_at, status, reason, detail,
       cli_version, node_name, node_ip, node_port, ssh_host_keys, queue_position, estimated_start_at, launched_at,
       expires_at, reservation_ended, last_updated, version, github_user, warning, node_count, other_members,
       warned_minutes, extension_error, oom_count, last_oom_at, kept_until, idle_warned_at, idle_warning,
       disk_id, disk_name, ebs_volume_id, start_at, likely_from, likely_to
FROM reservation_rows;

-- The first promise to each request that had to wait, and when it started: what the next ones are told follows
-- from that, and how good it was can be measured.
CREATE TABLE forecasts (
    reservation_id  uuid PRIMARY KEY REFERENCES reservations,
    gpu_type        text NOT NULL,
    slots           integer NOT NULL,
    asked_at        timestamptz NOT NULL,
    promised_at     timestamptz NOT NULL,
    likely_from     timestamptz,
    likely_at       timestamptz,
    likely_to       timestamptz,
    started_at      timestamptz
);
COMMENT ON COLUMN forecasts.slots IS 'GPUs on all nodes together, 1 for a CPU slot';
CREATE INDEX forecasts_started ON forecasts (gpu_type, started_at) WHERE started_at IS NOT NULL;

-- The nodes in service as admission saw them last, for those who only ask what would be.
ALTER TABLE gpu_types ADD COLUMN rooms jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN gpu_types.rooms IS 'Nodes in service: name, slots, and how many of these others than reservations have';
