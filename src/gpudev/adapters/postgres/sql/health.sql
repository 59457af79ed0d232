-- name: check
SELECT (SELECT max(number) FROM schema_migrations) AS schema_version,
       EXISTS (SELECT FROM pgmq.meta WHERE queue_name = 'gpu_reservations') AS has_queue;
