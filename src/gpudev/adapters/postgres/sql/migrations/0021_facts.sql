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

ALTER TABLE reservation_events RENAME COLUMN message TO fact;
ALTER TABLE reservation_events ALTER COLUMN fact TYPE jsonb USING
    jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', fact));

DROP VIEW listed_rows;
DROP VIEW reservation_rows;

-- A warning about a running server is told to be over once, so it stays one. Notices are told again.
ALTER TABLE reservations
    ALTER COLUMN detail DROP DEFAULT,
    ALTER COLUMN detail DROP NOT NULL,
    ALTER COLUMN detail TYPE jsonb USING CASE
        WHEN detail LIKE 'Warning: %' THEN jsonb_build_object('key', 'server_warning', 'data',
            jsonb_build_object('what', jsonb_build_object('key', 'words', 'data',
                jsonb_build_object('words', substr(detail, 10)))))
        WHEN detail <> '' THEN
            jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', detail)) END,
    ALTER COLUMN warning DROP DEFAULT,
    ALTER COLUMN warning DROP NOT NULL,
    ALTER COLUMN warning TYPE jsonb USING CASE WHEN warning <> '' THEN
        jsonb_build_array(jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', warning))) END,
    ALTER COLUMN extension_error DROP DEFAULT,
    ALTER COLUMN extension_error DROP NOT NULL,
    ALTER COLUMN extension_error TYPE jsonb USING CASE WHEN extension_error <> '' THEN
        jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', extension_error)) END,
    ALTER COLUMN progress TYPE jsonb USING CASE WHEN progress <> '' THEN
        jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', progress)) END,
    ALTER COLUMN idle_warning DROP DEFAULT,
    ALTER COLUMN idle_warning DROP NOT NULL,
    ALTER COLUMN idle_warning TYPE jsonb USING CASE WHEN idle_warning <> '' THEN
        jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', idle_warning)) END,
    ALTER COLUMN drain_warning DROP DEFAULT,
    ALTER COLUMN drain_warning DROP NOT NULL,
    ALTER COLUMN drain_warning TYPE jsonb USING CASE WHEN drain_warning <> '' THEN
        jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', drain_warning)) END,
    ALTER COLUMN told_notices TYPE jsonb USING CASE WHEN cardinality(told_notices) = 0 THEN '[]'::jsonb END,
    ALTER COLUMN idle_words DROP DEFAULT,
    ALTER COLUMN idle_words DROP NOT NULL,
    ALTER COLUMN idle_words TYPE jsonb USING CASE WHEN idle_words <> '' THEN
        jsonb_build_object('key', 'words', 'data', jsonb_build_object('words', idle_words)) END;

CREATE VIEW reservation_rows AS
SELECT r.reservation_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count, r.duration, r.created_at,
       r.status, r.reason, r.detail, r.env_vars, r.ssh_public_keys, r.cli_version, r.node_name, r.node_ip,
       r.node_port, r.ssh_host_keys, r.queue_position, r.estimated_start_at, r.last_queue_update, r.placed_at,
       r.launched_at, r.expires_at, r.reservation_ended, r.cancelled_at, r.cleaned_at, r.last_updated,
       r.version, r.github_user, r.warning, r.node_count, r.other_members, r.warned_minutes, r.extension_error,
       r.oom_count, r.last_oom_at, r.told_notices, r.progress, r.progress_at, r.stale_since, r.driven_at,
       r.kept_until, r.idle_warned_at, r.idle_warning, r.usage_at, r.idle_since, r.idle_words, r.image,
       r.port_slot, r.disk_id, r.disk_name, r.ebs_volume_id, r.planned_nodes, r.start_at, r.likely_from,
       r.likely_to, r.node_labels, r.drain_warning, r.outcome, r.exit_code
FROM reservations r JOIN api_users u USING (user_id);

CREATE VIEW listed_rows AS SELECT * FROM reservation_rows;
