-- Where snapshots cannot be read, what is on a disk is listed on its last server, before that goes. The listing
-- waits here for the snapshot that it is put with.
ALTER TABLE disks
    ADD COLUMN home_listing     text,
    ADD COLUMN home_used_bytes  bigint;
COMMENT ON COLUMN disks.home_listing IS 'Files in the home of the last server, until a snapshot of them is complete';
