-- What happened is stored as a fact, {"key": ..., "data": {...}}, and becomes a sentence where it is shown.
-- Sentences of older versions are kept as they are, under the key "words".
DROP VIEW disk_rows;

ALTER TABLE disks
    ALTER COLUMN problem DROP DEFAULT,
    ALTER COLUMN problem DROP NOT NULL,
    ALTER COLUMN problem TYPE jsonb USING CASE WHEN problem <> '' THEN
        jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', problem)) END,
    ALTER COLUMN operation_error DROP DEFAULT,
    ALTER COLUMN operation_error DROP NOT NULL,
    ALTER COLUMN operation_error TYPE jsonb USING CASE WHEN operation_error <> '' THEN
        jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', operation_error)) END;

ALTER TABLE disk_operations
    ALTER COLUMN error DROP DEFAULT,
    ALTER COLUMN error DROP NOT NULL,
    ALTER COLUMN error TYPE jsonb USING CASE WHEN error <> '' THEN
        jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', error)) END;

ALTER TABLE disk_events RENAME COLUMN message TO fact;
ALTER TABLE disk_events ALTER COLUMN fact TYPE jsonb USING
    jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', fact));

ALTER TABLE disk_reconciliations ALTER COLUMN remarks TYPE jsonb USING to_jsonb(remarks);
UPDATE disk_reconciliations SET remarks = (
    SELECT coalesce(
        jsonb_agg(jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', remark))), '[]')
    FROM jsonb_array_elements_text(remarks) AS remark);

ALTER TABLE operations
    ALTER COLUMN error DROP DEFAULT,
    ALTER COLUMN error DROP NOT NULL,
    ALTER COLUMN error TYPE jsonb USING CASE WHEN error <> '' THEN
        jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', error)) END;

CREATE VIEW disk_rows AS
SELECT d.disk_id, d.user_id, u.username, d.name, d.size_gb, d.created_at, d.state, d.reservation_id,
       d.ebs_volume_id, d.zone, d.source_disk_id, d.source_snapshot_id, d.is_dirty, d.snapshot_number,
       d.snapshot_count, d.last_snapshot_at, d.last_used, d.released_at, d.deleted_at, d.delete_date, d.problem,
       d.is_attached, d.has_pending_snapshot, d.operation_id, d.operation_status, d.version, d.latest_snapshot_content_s3,
       (SELECT r.reservation_id FROM reservations r
        WHERE r.disk_id = d.disk_id AND r.status IN ('pending', 'queued', 'preparing', 'active')) AS named_by
FROM disks d JOIN api_users u USING (user_id);
