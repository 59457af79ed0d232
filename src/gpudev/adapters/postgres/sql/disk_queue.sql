-- name: read
SELECT msg_id, read_ct, message ->> 'disk_id' AS disk_id
FROM pgmq.read('disk_operations', $1, $2);

-- name: archive
SELECT pgmq.archive('disk_operations', $1::bigint[]);
