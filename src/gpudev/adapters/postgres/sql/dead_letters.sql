-- Move a message to the dead letters as it is, with the error in its headers. Who comes second finds nothing to move.
-- name: bury_gpu_reservations
WITH taken AS (
    SELECT message, pgmq.archive('gpu_reservations', msg_id) AS is_ours
    FROM pgmq.q_gpu_reservations WHERE msg_id = :id::bigint
)
SELECT pgmq.send('gpu_reservations_dead', message, jsonb_build_object('error', :error::text)) FROM taken WHERE is_ours;

-- The same for messages about disks.
-- name: bury_disk_operations
WITH taken AS (
    SELECT message, pgmq.archive('disk_operations', msg_id) AS is_ours
    FROM pgmq.q_disk_operations WHERE msg_id = :id::bigint
)
SELECT pgmq.send('disk_operations_dead', message, jsonb_build_object('error', :error::text)) FROM taken WHERE is_ours;

-- The same for notifications.
-- name: bury_notifications
WITH taken AS (
    SELECT message, pgmq.archive('notifications', msg_id) AS is_ours
    FROM pgmq.q_notifications WHERE msg_id = :id::bigint
)
SELECT pgmq.send('notifications_dead', message, jsonb_build_object('error', :error::text)) FROM taken WHERE is_ours;

-- The latest dead letters of all queues.
-- name: list_all
SELECT queue, msg_id, left(message::text, 2000) AS message, coalesce(error, '') AS error, enqueued_at
FROM dead_letters ORDER BY enqueued_at DESC, queue, msg_id DESC LIMIT :limit;

-- Send a dead letter again.
-- name: retry
WITH taken AS (
    SELECT queue, message, pgmq.delete(queue || '_dead', msg_id) AS is_ours
    FROM dead_letters WHERE queue = :queue AND msg_id = :id::bigint
)
SELECT (SELECT pgmq.send(queue, message)) IS NOT NULL AND pg_notify('gpu_dev_messages', queue) IS NOT NULL
FROM taken WHERE is_ours;

-- Delete a dead letter.
-- name: drop
SELECT pgmq.delete(:queue::text || '_dead', :id::bigint);

-- How many dead letters each queue has.
-- name: count
SELECT queue, count(*) AS letters FROM dead_letters GROUP BY queue;
