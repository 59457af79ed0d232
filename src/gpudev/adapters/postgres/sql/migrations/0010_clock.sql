-- What the clock has done to a reservation so far. Most of it is no change of the reservation: it notes what
-- was seen and done, so that the next turn, in whatever process, goes on from there.
ALTER TABLE reservations
    ADD COLUMN warned_minutes  integer,
    ADD COLUMN extension_error text NOT NULL DEFAULT '',
    ADD COLUMN oom_count       integer NOT NULL DEFAULT 0,
    ADD COLUMN last_oom_at     timestamptz,
    ADD COLUMN told_notices    text[],
    ADD COLUMN progress        text,
    ADD COLUMN progress_at     timestamptz,
    ADD COLUMN stale_since     timestamptz,
    ADD COLUMN driven_at       timestamptz,
    ADD COLUMN kept_until      timestamptz,
    ADD COLUMN idle_warned_at  timestamptz,
    ADD COLUMN idle_warning    text NOT NULL DEFAULT '',
    ADD COLUMN usage_at        timestamptz,
    ADD COLUMN idle_since      timestamptz,
    ADD COLUMN idle_words      text NOT NULL DEFAULT '';
COMMENT ON COLUMN reservations.warned_minutes IS 'The nearest warning that was sent for the present end';
COMMENT ON COLUMN reservations.told_notices IS 'The notices that stand on its server';
COMMENT ON COLUMN reservations.progress IS 'What the cluster last said of its start';
COMMENT ON COLUMN reservations.stale_since IS 'Since when it waits without being renewed, and is driven';

ALTER TABLE reservations DROP CONSTRAINT reservations_reason;
ALTER TABLE reservations ADD CONSTRAINT reservations_reason CHECK (reason IN (
    'waiting_for_capacity', 'waiting_in_line', 'no_nodes', 'placement_lost', 'time_is_up', 'went_idle',
    'cancelled_by_user', 'cancelled_by_admin', 'start_failed', 'start_timed_out', 'start_stalled',
    'queue_stalled', 'queued_too_long', 'server_failed', 'pod_deleted', 'internal_error'));

ALTER TABLE reservation_events DROP CONSTRAINT reservation_events_kind;
ALTER TABLE reservation_events ADD CONSTRAINT reservation_events_kind CHECK (kind IN (
    'submitted', 'queued', 'placed', 'requeued', 'active', 'warned', 'extended', 'extension_refused',
    'idle_warned', 'idle_over', 'kept', 'out_of_memory', 'expired', 'cancelled', 'failed', 'cleaned'));

ALTER TABLE operations
    ADD COLUMN length     interval,
    ADD COLUMN not_before timestamptz,
    ADD COLUMN reason     text NOT NULL DEFAULT '';
ALTER TABLE operations DROP CONSTRAINT operations_kind;
ALTER TABLE operations ADD CONSTRAINT operations_kind CHECK (kind IN ('cancel', 'extend', 'keep'));

CREATE OR REPLACE VIEW reservation_rows AS
SELECT r.reservation_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count, r.duration, r.created_at,
       r.status, r.reason, r.detail, r.env_vars, r.ssh_public_keys, r.cli_version, r.node_name, r.node_ip,
       r.node_port, r.ssh_host_keys, r.queue_position, r.estimated_start_at, r.last_queue_update, r.placed_at,
       r.launched_at, r.expires_at, r.reservation_ended, r.cancelled_at, r.cleaned_at, r.last_updated,
       r.version, r.github_user, r.warning, r.node_count, r.other_members, r.warned_minutes, r.extension_error, r.oom_count, r.last_oom_at,
       r.told_notices, r.progress, r.progress_at, r.stale_since, r.driven_at, r.kept_until, r.idle_warned_at,
       r.idle_warning, r.usage_at, r.idle_since, r.idle_words
FROM reservations r JOIN api_users u USING (user_id);

CREATE OR REPLACE VIEW listed_rows AS
SELECT reservation_id, user_id, username, name, gpu_type, gpu_count, duration, created_at, status, reason, detail,
       cli_version, node_name, node_ip, node_port, ssh_host_keys, queue_position, estimated_start_at, launched_at,
       expires_at, reservation_ended, last_updated, version, github_user, warning, node_count, other_members,
       warned_minutes,
       extension_error, oom_count, last_oom_at, kept_until, idle_warned_at, idle_warning
FROM reservation_rows;

-- What was measured of the use of each server, a row a minute or so. Null is not known.
CREATE TABLE reservation_usage (
    reservation_id      uuid NOT NULL REFERENCES reservations,
    at                  timestamptz NOT NULL,
    gpu_use             real,
    gpu_memory          real,
    ssh                 real,
    jupyter             real,
    cpu                 real,
    is_idle             boolean NOT NULL,
    is_simulated        boolean NOT NULL,
    PRIMARY KEY (reservation_id, at)
);

-- Where users want to hear of what. The secret signs what is sent, so it is needed as it is.
CREATE TABLE notification_targets (
    user_id     integer PRIMARY KEY REFERENCES api_users,
    kind        text NOT NULL CONSTRAINT notification_targets_kind CHECK (kind IN ('webhook', 'slack')),
    url         text NOT NULL,
    secret      text NOT NULL,
    topics      text[] NOT NULL,
    updated_at  timestamptz NOT NULL DEFAULT now()
);

SELECT pgmq.create('notifications');

-- Every event of a reservation whose owner wants to hear of some goes into the queue with it.
CREATE FUNCTION queue_notification() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM reservations r JOIN notification_targets USING (user_id)
               WHERE r.reservation_id = NEW.reservation_id) THEN
        PERFORM pgmq.send('notifications', jsonb_build_object(
            'reservation_id', NEW.reservation_id, 'number', NEW.number));
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER queue_notification AFTER INSERT ON reservation_events
    FOR EACH ROW EXECUTE FUNCTION queue_notification();
