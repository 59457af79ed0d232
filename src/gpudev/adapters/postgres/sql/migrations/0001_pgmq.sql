-- PGMQ, from the SQL that the `pgmq` package carries, unless the database has it already (as an extension, say).
-- include: pgmq

SELECT pgmq.create('gpu_reservations');
SELECT pgmq.create('gpu_reservations_dead');
SELECT pgmq.create('disk_operations');
SELECT pgmq.create('disk_operations_dead');
