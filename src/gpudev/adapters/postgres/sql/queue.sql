-- name: read
SELECT msg_id, read_ct, message ->> 'reservation_id' AS reservation_id
FROM pgmq.read('gpu_reservations', $1, $2);

-- name: archive
SELECT pgmq.archive('gpu_reservations', $1::bigint[]);

-- name: count
SELECT count(*) FROM pgmq.q_gpu_reservations;
