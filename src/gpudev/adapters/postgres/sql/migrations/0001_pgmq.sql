-- PGMQ, from the SQL that the `pgmq` package carries, unless the database has it already (as an extension, say). The
-- digest pins that SQL: no other is installed, and the checksum of this migration covers it.
-- include: pgmq sha256=bf7e66c75ed771df0c5f7cb2b9f0123ca77992daacd56e3911d1894a3efa99de

SELECT pgmq.create('gpu_reservations');
SELECT pgmq.create('gpu_reservations_dead');
SELECT pgmq.create('disk_operations');
SELECT pgmq.create('disk_operations_dead');
