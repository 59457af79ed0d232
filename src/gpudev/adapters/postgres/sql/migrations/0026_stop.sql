-- A reservation can be stopped: it has no server, and its GPUs and its disk are free, until it is started again.
ALTER TABLE reservation_records ADD COLUMN stopped_at timestamptz;
COMMENT ON COLUMN reservation_records.stopped_at IS 'When it was stopped; null: not since it was last requested';

ALTER TABLE reservation_records DROP CONSTRAINT reservations_status;
ALTER TABLE reservation_records ADD CONSTRAINT reservations_status CHECK (status IN (
    'pending', 'queued', 'preparing', 'active', 'stopped', 'expired', 'cancelled', 'failed'));
ALTER TABLE reservation_records DROP CONSTRAINT reservations_reason;
ALTER TABLE reservation_records ADD CONSTRAINT reservations_reason CHECK (reason IN (
    'waiting_for_capacity', 'waiting_in_line', 'no_nodes', 'waiting_for_quota', 'booked', 'disk_busy',
    'placement_lost', 'stopped_by_user', 'stopped_by_admin', 'stopped_too_long', 'time_is_up', 'went_idle',
    'cancelled_by_user', 'cancelled_by_admin', 'command_finished', 'start_failed', 'start_timed_out',
    'start_stalled', 'queue_stalled', 'queued_too_long', 'server_failed', 'image_unavailable', 'pod_deleted',
    'node_lost', 'evicted', 'out_of_memory', 'disk_failed', 'internal_error'));
ALTER TABLE reservation_records DROP CONSTRAINT reservations_end;
ALTER TABLE reservation_records ADD CONSTRAINT reservations_end CHECK (
    (ended_at IS NULL) = (status IN ('pending', 'queued', 'preparing', 'active', 'stopped')));
ALTER TABLE reservation_events DROP CONSTRAINT reservation_events_kind;
ALTER TABLE reservation_events ADD CONSTRAINT reservation_events_kind CHECK (kind IN (
    'submitted', 'queued', 'placed', 'progress', 'requeued', 'replanned', 'active', 'warning', 'warned', 'extended',
    'extension_refused', 'idle_warned', 'idle_over', 'kept', 'out_of_memory', 'node_leaves', 'node_stays',
    'finished', 'stopped', 'released', 'resumed', 'expired', 'cancelled', 'failed', 'cleaned'));
ALTER TABLE operations DROP CONSTRAINT operations_kind;
ALTER TABLE operations ADD CONSTRAINT operations_kind CHECK (kind IN ('cancel', 'extend', 'keep', 'stop'));

DROP INDEX reservations_live_name;
CREATE UNIQUE INDEX reservations_live_name ON reservation_records (user_id, name)
    WHERE status IN ('pending', 'queued', 'preparing', 'active', 'stopped');
-- One that was started again waits for its disk, whoever has it.
DROP INDEX reservations_live_disk;
CREATE UNIQUE INDEX reservations_live_disk ON reservation_records (disk_id)
    WHERE status IN ('preparing', 'active') OR (status IN ('pending', 'queued') AND used = interval '0');
-- To find who has a disk or wants it.
CREATE INDEX reservations_disk ON reservation_records (disk_id)
    WHERE status IN ('pending', 'queued', 'preparing', 'active');

DROP VIEW disk_rows;
CREATE VIEW disk_rows AS
SELECT d.*, u.username,
       (SELECT r.reservation_id FROM reservation_records r
        WHERE r.disk_id = d.disk_id AND r.status IN ('pending', 'queued', 'preparing', 'active')
        ORDER BY r.status IN ('preparing', 'active') DESC, r.created_at, r.reservation_id LIMIT 1) AS named_by
FROM disks d JOIN api_users u USING (user_id);

DROP VIEW reservation_rows;
DROP VIEW reservation_parts;
CREATE VIEW reservation_parts AS
SELECT r.*, s.image, s.env_vars, s.ssh_public_keys, s.github_user, s.client_version, s.time_zone,
       m.node_name AS member_node, m.host AS member_host, m.port AS member_port, m.host_keys AS member_keys,
       CASE WHEN r.node_count > 1 THEN (
           SELECT jsonb_agg(jsonb_build_object('node', o.node_name, 'host', o.host, 'port', o.port,
                                               'keys', o.host_keys) ORDER BY o.rank)
           FROM reservation_members o WHERE o.reservation_id = r.reservation_id AND o.rank > 0) END AS other_members
FROM reservation_records r JOIN reservation_settings s USING (reservation_id)
LEFT JOIN reservation_members m ON m.reservation_id = r.reservation_id AND m.rank = 0;

CREATE VIEW reservation_rows AS
SELECT p.*, u.username FROM reservation_parts p JOIN api_users u USING (user_id);

DROP VIEW reservations;
CREATE VIEW reservations AS
SELECT r.reservation_id, r.reservation_id AS job_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count,
       r.node_count, r.duration, extract(epoch FROM r.duration)::float8 / 3600 AS duration_hours, r.created_at,
       r.start_at, r.node_labels, r.status, r.reason, r.detail, r.detail AS current_detailed_status,
       CASE WHEN r.status = 'failed' THEN r.detail END AS failure_reason, r.placed_at, r.launched_at, r.expires_at,
       r.stopped_at, r.ended_at AS reservation_ended, CASE WHEN r.status = 'cancelled' THEN r.ended_at END AS cancelled_at,
       r.cleaned_at, r.last_updated, r.version, r.event_count, r.outcome, r.exit_code, r.queue_position,
       r.estimated_start_at, r.planned_nodes, r.likely_from, r.likely_to, r.last_queue_update, r.warning,
       r.warned_minutes, r.extension_error, r.oom_count, r.last_oom_at, r.progress, r.progress_at, r.kept_until,
       r.idle_warned_at, r.idle_warning, r.drain_warning, r.usage_at, r.idle_since, r.idle_words, r.disk_id,
       r.disk_name, r.volume_id AS ebs_volume_id, r.port_slot, s.image, s.env_vars, s.ssh_public_keys,
       s.github_user, s.client_version AS cli_version, 'gpu-dev-' || left(r.reservation_id::text, 8) AS pod_name,
       m.node_name, m.host AS node_ip, m.port AS node_port, m.host_keys AS ssh_host_keys
FROM reservation_records r JOIN api_users u USING (user_id)
JOIN reservation_settings s USING (reservation_id)
LEFT JOIN reservation_members m ON m.reservation_id = r.reservation_id AND m.rank = 0;
