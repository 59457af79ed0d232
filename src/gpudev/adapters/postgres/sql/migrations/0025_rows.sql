-- A reservation is read with its first member by an index; only a gang has others to collect.
DROP VIEW reservation_rows;
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

-- Audit entries are written by the statements themselves.
DROP FUNCTION write_audit(jsonb);
