-- A reservation may have had servers before the present one. Each of them is a run: what it took, and for how long.
ALTER TABLE reservation_records ADD COLUMN requested_at timestamptz;
ALTER TABLE reservation_records ADD COLUMN used interval NOT NULL DEFAULT '0';
COMMENT ON COLUMN reservation_records.requested_at IS 'When it was requested again; null: it never was';
COMMENT ON COLUMN reservation_records.used IS 'How long its earlier servers were active';

CREATE TABLE reservation_runs (
    reservation_id  uuid NOT NULL REFERENCES reservation_records ON DELETE CASCADE,
    user_id         integer NOT NULL REFERENCES api_users,
    gpu_type        text NOT NULL REFERENCES gpu_types,
    gpu_count       integer NOT NULL,
    requested_at    timestamptz NOT NULL,
    launched_at     timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    ended_at        timestamptz NOT NULL,
    PRIMARY KEY (reservation_id, launched_at)
);
COMMENT ON TABLE reservation_runs IS 'The servers that a reservation had before its present one';
CREATE INDEX reservation_runs_of_user ON reservation_runs (user_id, gpu_type);

CREATE VIEW runs AS
SELECT reservation_id, user_id, gpu_type, gpu_count, coalesce(requested_at, created_at) AS requested_at, launched_at,
       expires_at, ended_at
FROM reservation_records WHERE launched_at IS NOT NULL
UNION ALL
SELECT reservation_id, user_id, gpu_type, gpu_count, requested_at, launched_at, expires_at, ended_at
FROM reservation_runs;

DROP VIEW reservation_rows;
CREATE VIEW reservation_rows AS
SELECT r.*, u.username, s.image, s.env_vars, s.ssh_public_keys, s.github_user, s.client_version,
       m.member_nodes, m.member_hosts, m.member_ports, m.member_keys, s.time_zone
FROM reservation_records r JOIN api_users u USING (user_id)
JOIN reservation_settings s USING (reservation_id)
CROSS JOIN LATERAL (
    SELECT array_agg(node_name ORDER BY rank) AS member_nodes, array_agg(host ORDER BY rank) AS member_hosts,
           array_agg(port ORDER BY rank) AS member_ports,
           array_agg(array_to_string(host_keys, E'\n') ORDER BY rank) AS member_keys
    FROM reservation_members WHERE reservation_id = r.reservation_id) m;
