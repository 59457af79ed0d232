-- A reservation in parts. One record has the parts that are listed and searched together, each as a group of columns;
-- what only its dev server needs, and its members, are tables of their own. `reservations` is the view for operators.
DROP VIEW listed_rows, reservation_rows, reservation_marks, availability_rows, disk_rows;
DROP TRIGGER count_added ON reservations;
DROP TRIGGER count_removed ON reservations;
DROP FUNCTION count_reservations;
DROP TRIGGER queue_notification ON reservation_events;
DROP FUNCTION queue_notification;

CREATE TABLE reservation_settings (
    reservation_id   uuid PRIMARY KEY,
    image            text NOT NULL,
    env_vars         jsonb NOT NULL,
    ssh_public_keys  text[] NOT NULL,
    github_user      text NOT NULL,
    client_version   text NOT NULL
);
COMMENT ON TABLE reservation_settings IS 'How the dev server is set up; written once';
INSERT INTO reservation_settings
SELECT reservation_id, image, env_vars, ssh_public_keys, github_user, cli_version FROM reservations;

CREATE TABLE reservation_members (
    reservation_id  uuid NOT NULL,
    rank            integer NOT NULL CHECK (rank >= 0),
    node_name       text NOT NULL,
    host            text,
    port            integer,
    host_keys       text[] NOT NULL,
    PRIMARY KEY (reservation_id, rank),
    CONSTRAINT reservation_members_address CHECK ((host IS NULL) = (port IS NULL))
);
COMMENT ON TABLE reservation_members IS 'The part of a reservation on each of its nodes; none before it is placed';
INSERT INTO reservation_members
SELECT reservation_id, 0, node_name, node_ip, node_port, ssh_host_keys FROM reservations WHERE node_name IS NOT NULL;
INSERT INTO reservation_members
SELECT reservation_id, other.rank, other.value ->> 'node', other.value -> 'address' ->> 'host',
       (other.value -> 'address' ->> 'port')::integer,
       ARRAY(SELECT jsonb_array_elements_text(other.value -> 'host_keys'))
FROM reservations, jsonb_array_elements(other_members) WITH ORDINALITY AS other (value, rank);

ALTER TABLE reservations RENAME TO reservation_records;
ALTER TABLE reservation_records RENAME COLUMN reservation_ended TO ended_at;
ALTER TABLE reservation_records RENAME COLUMN ebs_volume_id TO volume_id;
ALTER TABLE reservation_records
    DROP CONSTRAINT reservations_members, DROP CONSTRAINT reservations_place, DROP CONSTRAINT reservations_address,
    DROP COLUMN image, DROP COLUMN env_vars, DROP COLUMN ssh_public_keys, DROP COLUMN github_user,
    DROP COLUMN cli_version, DROP COLUMN node_name, DROP COLUMN node_ip, DROP COLUMN node_port,
    DROP COLUMN ssh_host_keys, DROP COLUMN other_members, DROP COLUMN cancelled_at,
    ADD CONSTRAINT reservations_place CHECK (placed_at IS NOT NULL OR status NOT IN ('preparing', 'active'));
ALTER TABLE reservation_settings ADD FOREIGN KEY (reservation_id) REFERENCES reservation_records ON DELETE CASCADE;
ALTER TABLE reservation_members ADD FOREIGN KEY (reservation_id) REFERENCES reservation_records ON DELETE CASCADE;

-- How many reservations each user has of each type. Several rows for one count, so that writers do not wait in line.
DROP TABLE reservation_counts;
CREATE TABLE reservation_counts (
    user_id   integer NOT NULL REFERENCES api_users,
    gpu_type  text NOT NULL,
    slot      integer NOT NULL,
    counted   integer NOT NULL,
    PRIMARY KEY (user_id, gpu_type, slot)
) WITH (fillfactor = 50);
INSERT INTO reservation_counts (user_id, gpu_type, slot, counted)
SELECT user_id, gpu_type, 0, count(*) FROM reservation_records GROUP BY user_id, gpu_type;

-- A whole reservation, as the service reads it.
CREATE VIEW reservation_rows AS
SELECT r.*, u.username, s.image, s.env_vars, s.ssh_public_keys, s.github_user, s.client_version,
       m.member_nodes, m.member_hosts, m.member_ports, m.member_keys
FROM reservation_records r JOIN api_users u USING (user_id)
JOIN reservation_settings s USING (reservation_id)
CROSS JOIN LATERAL (
    SELECT array_agg(node_name ORDER BY rank) AS member_nodes, array_agg(host ORDER BY rank) AS member_hosts,
           array_agg(port ORDER BY rank) AS member_ports,
           array_agg(array_to_string(host_keys, E'\n') ORDER BY rank) AS member_keys
    FROM reservation_members WHERE reservation_id = r.reservation_id) m;

-- For operators: the columns have the names that the API uses.
CREATE VIEW reservations AS
SELECT r.reservation_id, r.reservation_id AS job_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count,
       r.node_count, r.duration, extract(epoch FROM r.duration)::float8 / 3600 AS duration_hours, r.created_at,
       r.start_at, r.node_labels, r.status, r.reason, r.detail, r.detail AS current_detailed_status,
       CASE WHEN r.status = 'failed' THEN r.detail END AS failure_reason, r.placed_at, r.launched_at, r.expires_at,
       r.ended_at AS reservation_ended, CASE WHEN r.status = 'cancelled' THEN r.ended_at END AS cancelled_at,
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

-- The mark of a reservation is another one after every write to its record. The transaction alone would say that,
-- but for one case: its number is used again when a replica takes over that had not heard of it.
CREATE VIEW reservation_marks AS
SELECT reservation_id, user_id, created_at, status, gpu_type,
       uuid_send(reservation_id) || timestamptz_send(last_updated) || xidsend(xmin) AS mark
FROM reservation_records;

CREATE VIEW availability_rows AS
SELECT g.gpu_type, g.total_cluster_gpus, g.available_gpus, g.max_reservable, g.full_nodes_available,
       g.running_instances, g.is_simulated, g.next_start_at, g.max_per_node, g.last_availability_update,
       coalesce(w.requests, 0) AS queued_requests, coalesce(w.gpus, 0) AS queued_gpus
FROM gpu_types g LEFT JOIN (
    SELECT gpu_type, count(*) AS requests, sum(gpu_count) AS gpus
    FROM reservation_records WHERE cleaned_at IS NULL AND status IN ('pending', 'queued')
    GROUP BY gpu_type) w USING (gpu_type)
WHERE g.is_active;

CREATE VIEW disk_rows AS
SELECT d.*, u.username,
       (SELECT r.reservation_id FROM reservation_records r
        WHERE r.disk_id = d.disk_id AND r.status IN ('pending', 'queued', 'preparing', 'active')) AS named_by
FROM disks d JOIN api_users u USING (user_id);
