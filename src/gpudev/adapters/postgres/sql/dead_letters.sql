-- The message moves as it is, with the error in its headers. Who comes second finds nothing to move.
-- name: bury_gpu_reservations
SELECT CASE WHEN pgmq.archive('gpu_reservations', m.msg_id) THEN
           (SELECT pgmq.send('gpu_reservations_dead', m.message, jsonb_build_object('error', $2::text))) END
FROM pgmq.q_gpu_reservations m WHERE m.msg_id = $1::bigint;

-- name: bury_disk_operations
SELECT CASE WHEN pgmq.archive('disk_operations', m.msg_id) THEN
           (SELECT pgmq.send('disk_operations_dead', m.message, jsonb_build_object('error', $2::text))) END
FROM pgmq.q_disk_operations m WHERE m.msg_id = $1::bigint;

-- name: bury_notifications
SELECT CASE WHEN pgmq.archive('notifications', m.msg_id) THEN
           (SELECT pgmq.send('notifications_dead', m.message, jsonb_build_object('error', $2::text))) END
FROM pgmq.q_notifications m WHERE m.msg_id = $1::bigint;

-- name: list_all
SELECT queue, msg_id, left(message::text, 2000) AS message, coalesce(error, '') AS error, enqueued_at
FROM dead_letters ORDER BY enqueued_at DESC, queue, msg_id DESC LIMIT $1;

-- name: retry
SELECT CASE WHEN pgmq.delete(d.queue || '_dead', d.msg_id)
            THEN (SELECT pgmq.send(d.queue, d.message)) IS NOT NULL
                 AND pg_notify('gpu_dev_messages', d.queue) IS NOT NULL
            ELSE false END
FROM dead_letters d WHERE d.queue = $1 AND d.msg_id = $2::bigint;

-- name: drop
SELECT pgmq.delete($1::text || '_dead', $2::bigint);

-- name: count
SELECT queue, count(*) AS letters FROM dead_letters GROUP BY queue;
