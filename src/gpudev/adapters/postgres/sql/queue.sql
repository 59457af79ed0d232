-- Messages of a queue, hidden for so many seconds from everybody else; `field` is the one that has the key.
-- name: read
SELECT msg_id, read_ct, message ->> :field::text AS key FROM pgmq.read(:queue::text, :hidden_for, :limit);

-- Done with these messages.
-- name: archive
SELECT pgmq.archive(:queue::text, :ids::bigint[]);

-- How many messages about reservations wait or are being worked on.
-- name: count
SELECT count(*) FROM pgmq.q_gpu_reservations;
