-- Which controllers run, and which of their chores keep failing: one row a host, written every few seconds.
CREATE TABLE controllers (
    name     text PRIMARY KEY,
    beat_at  timestamptz NOT NULL,
    failing  text[] NOT NULL
);

-- The other queues have one already.
SELECT pgmq.create('notifications_dead');

CREATE VIEW dead_letters AS
SELECT 'gpu_reservations' AS queue, msg_id, message, headers ->> 'error' AS error, enqueued_at
FROM pgmq.q_gpu_reservations_dead
UNION ALL
SELECT 'disk_operations', msg_id, message, headers ->> 'error', enqueued_at FROM pgmq.q_disk_operations_dead
UNION ALL
SELECT 'notifications', msg_id, message, headers ->> 'error', enqueued_at FROM pgmq.q_notifications_dead;
