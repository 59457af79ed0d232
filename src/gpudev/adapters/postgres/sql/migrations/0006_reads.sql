-- Keys that are not revoked, and whose they are: the one definition that every statement shares which finds
-- out who is asking. That a key has expired or its owner is disabled is for the reader to see.
CREATE VIEW callers AS
SELECT k.key_hash, k.expires_at, u.user_id, u.username, u.is_active
FROM api_keys k JOIN api_users u USING (user_id)
WHERE k.is_active;

-- A reservation as lists show it: without what only its server and the rules need, which takes longer to read
-- than all the rest.
CREATE VIEW listed_rows AS
SELECT reservation_id, user_id, username, name, gpu_type, gpu_count, duration, created_at, status, reason, detail,
       cli_version, node_name, node_ip, node_port, ssh_host_keys, queue_position, estimated_start_at, launched_at,
       expires_at, reservation_ended, last_updated, version, github_user, warning
FROM reservation_rows;

-- The room of each type on offer, with what is wanted of it.
CREATE VIEW availability_rows AS
SELECT g.gpu_type, g.total_cluster_gpus, g.available_gpus, g.max_reservable, g.full_nodes_available,
       g.running_instances, g.is_simulated, g.next_start_at, g.max_per_node, g.last_availability_update,
       coalesce(w.requests, 0) AS queued_requests, coalesce(w.gpus, 0) AS queued_gpus
FROM gpu_types g
LEFT JOIN (SELECT gpu_type, count(*) AS requests, sum(gpu_count) AS gpus FROM reservations
           WHERE cleaned_at IS NULL AND status IN ('pending', 'queued') GROUP BY gpu_type) w USING (gpu_type)
WHERE g.is_active;

-- To find a reservation by its name among all that there ever were.
CREATE INDEX reservations_name ON reservations (name, user_id);

-- A page and its total without a sort, and the total without reading the rows.
DROP INDEX reservations_of_user;
CREATE INDEX reservations_of_user ON reservations (user_id, created_at DESC, reservation_id)
    INCLUDE (status, gpu_type);
