-- Make the database that of a cluster, unless it belongs to one already.
-- name: claim_for_cluster
INSERT INTO cluster_owner (cluster_id) VALUES (:cluster_id)
ON CONFLICT (is_only) DO UPDATE SET cluster_id = cluster_owner.cluster_id
RETURNING cluster_id;

-- Whether this version can work with the database.
-- name: check
SELECT (SELECT max(number) FROM schema_migrations) AS schema_version,
       EXISTS (SELECT FROM pgmq.meta WHERE queue_name = 'gpu_reservations') AS has_queue,
       pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on' AS is_read_only;

-- Note that a controller runs, and forget those that have not run for long.
-- name: beat
WITH forgotten AS (DELETE FROM controllers WHERE beat_at < clock_timestamp() - interval '1 day')
INSERT INTO controllers (name, beat_at, failing) VALUES (:name, clock_timestamp(), :failing::text[])
ON CONFLICT (name) DO UPDATE SET beat_at = excluded.beat_at, failing = excluded.failing;

-- The controllers, and how long ago each was heard of.
-- name: list_controllers
SELECT name, extract(epoch FROM clock_timestamp() - beat_at)::float8 AS seconds, failing FROM controllers;
