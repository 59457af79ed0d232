-- How many reservations each user has, so that the total of a list costs nothing however long the past is.
-- A session adds to a row of its own, as good as always: those who submit at once for one user do not wait for
-- one another's commit. Single rows mean nothing and may be negative; their sum is exact in every snapshot.
CREATE TABLE reservation_counts (
    user_id  integer NOT NULL REFERENCES api_users,
    slot     integer NOT NULL,
    counted  integer NOT NULL,
    PRIMARY KEY (user_id, slot)
) WITH (fillfactor = 50);

CREATE FUNCTION count_reservations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reservation_counts AS known (user_id, slot, counted)
    SELECT user_id, pg_backend_pid() % 16, CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END
    FROM changed GROUP BY user_id ORDER BY user_id
    ON CONFLICT (user_id, slot) DO UPDATE SET counted = known.counted + excluded.counted;
    RETURN NULL;
END
$$;
CREATE TRIGGER count_added AFTER INSERT ON reservations REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_reservations();
CREATE TRIGGER count_removed AFTER DELETE ON reservations REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_reservations();

-- The triggers have locked out whoever would add one now.
INSERT INTO reservation_counts (user_id, slot, counted)
SELECT user_id, 0, count(*) FROM reservations GROUP BY user_id;

-- The mark of a reservation is another one after every write to its row. The transaction alone would say that,
-- but for one case: its number is used again when a replica takes over that had not heard of it.
CREATE VIEW reservation_marks AS
SELECT reservation_id, user_id, created_at,
       uuid_send(reservation_id) || timestamptz_send(last_updated) || xidsend(xmin) AS mark
FROM reservations;
