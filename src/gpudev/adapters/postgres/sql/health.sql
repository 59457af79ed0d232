-- name: claim_for_cluster
INSERT INTO cluster_owner (cluster_id) VALUES ($1)
ON CONFLICT (is_only) DO UPDATE SET cluster_id = cluster_owner.cluster_id
RETURNING cluster_id;

-- name: check
SELECT (SELECT max(number) FROM schema_migrations) AS schema_version,
       EXISTS (SELECT FROM pgmq.meta WHERE queue_name = 'gpu_reservations') AS has_queue;
