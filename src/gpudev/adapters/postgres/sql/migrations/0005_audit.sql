-- Who did what. Rows are only ever added: a trigger refuses everything else. `action` has no list of
-- allowed words, because the log keeps what older versions wrote and takes what newer ones write.
CREATE TABLE audit_entries (
    entry_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    username  text NOT NULL,
    action    text NOT NULL,
    target    text NOT NULL,
    address   text NOT NULL,
    outcome   text NOT NULL CONSTRAINT audit_entries_outcome CHECK (outcome IN ('done', 'refused')),
    detail    text NOT NULL
);
CREATE INDEX audit_entries_at ON audit_entries (at);
CREATE INDEX audit_entries_of_user ON audit_entries (username, entry_id);

-- Each seal is a hash over the digests of its entries and over the seal before.
CREATE TABLE audit_seals (
    number         integer PRIMARY KEY,
    first_id       bigint NOT NULL,
    last_id        bigint NOT NULL,
    entries        integer NOT NULL,
    known_until    timestamptz NOT NULL,
    previous_hash  bytea NOT NULL,
    hash           bytea NOT NULL
);
COMMENT ON COLUMN audit_seals.known_until IS 'Entries that are older than this by minutes are all sealed';

CREATE TABLE audit_digests (
    entry_id     bigint PRIMARY KEY REFERENCES audit_entries,
    seal_number  integer NOT NULL REFERENCES audit_seals,
    digest       bytea NOT NULL
);
CREATE INDEX audit_digests_of_seal ON audit_digests (seal_number);

CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_seals
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_digests
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

-- For use within the statement of an action, so that neither is written without the other. Null is
-- nothing to write. Not beside a function that returns a set: it would be called once more than there
-- are rows.
CREATE FUNCTION write_audit(entries jsonb) RETURNS void LANGUAGE sql STRICT AS $$
    INSERT INTO audit_entries (username, action, target, address, outcome, detail)
    SELECT username, action, target, address, outcome, detail
    FROM jsonb_populate_recordset(NULL::audit_entries, entries)
$$;

CREATE TABLE login_failures (
    origin  text NOT NULL,
    at      timestamptz NOT NULL
);
CREATE INDEX login_failures_of_origin ON login_failures (origin, at);
COMMENT ON COLUMN login_failures.origin IS 'An IPv4 address, or an IPv6 network of 64 bits';
