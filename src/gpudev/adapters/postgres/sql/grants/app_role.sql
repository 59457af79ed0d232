-- What the API, the controllers and the proxy may do: read and write rows. They own nothing, so they can neither change
-- the schema nor empty a table, and the audit log is only ever added to. Run after the migrations, each time, so that new
-- tables are among them; the role is named by the setting `gpu_dev.app_role` of the session.
DO $$
DECLARE
    app text := current_setting('gpu_dev.app_role');
    added_to text;
BEGIN
    EXECUTE format('REVOKE CREATE ON SCHEMA public FROM PUBLIC, %I', app);
    EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), app);
    EXECUTE format('GRANT USAGE ON SCHEMA public, pgmq TO %I', app);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public, pgmq TO %I', app);
    EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public, pgmq TO %I', app);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON schema_migrations FROM %I', app);
    FOREACH added_to IN ARRAY ARRAY['audit_entries', 'audit_seals', 'audit_digests'] LOOP
        EXECUTE format('REVOKE UPDATE, DELETE ON %I FROM %I', added_to, app);
    END LOOP;
END
$$;
