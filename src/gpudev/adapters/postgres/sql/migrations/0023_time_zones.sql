-- Where the owner was when asking, as an IANA name: notices and notifications have their times there; empty: UTC.
ALTER TABLE reservation_settings ADD COLUMN time_zone text NOT NULL DEFAULT '';

CREATE OR REPLACE VIEW reservation_rows AS
SELECT r.*, u.username, s.image, s.env_vars, s.ssh_public_keys, s.github_user, s.client_version,
       m.member_nodes, m.member_hosts, m.member_ports, m.member_keys, s.time_zone
FROM reservation_records r JOIN api_users u USING (user_id)
JOIN reservation_settings s USING (reservation_id)
CROSS JOIN LATERAL (
    SELECT array_agg(node_name ORDER BY rank) AS member_nodes, array_agg(host ORDER BY rank) AS member_hosts,
           array_agg(port ORDER BY rank) AS member_ports,
           array_agg(array_to_string(host_keys, E'\n') ORDER BY rank) AS member_keys
    FROM reservation_members WHERE reservation_id = r.reservation_id) m;

COMMENT ON COLUMN reservation_records.drain_warning IS 'As it was told; null: its nodes stay in service';
