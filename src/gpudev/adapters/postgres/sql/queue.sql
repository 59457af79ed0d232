-- Messages of a queue, hidden for so many seconds from everybody else; $3 is the field that has the key.
-- name: read
SELECT msg_id, read_ct, message ->> $3::text AS key FROM pgmq.read($1::text, $2, $4);

-- Done with these messages.
-- name: archive
SELECT pgmq.archive($1::text, $2::bigint[]);

-- How many messages about reservations wait or are being worked on.
-- name: count
SELECT count(*) FROM pgmq.q_gpu_reservations;
