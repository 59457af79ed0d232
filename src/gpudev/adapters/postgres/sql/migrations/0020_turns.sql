-- Turns: when each item is worked on next, and which process has it in hand. One table for every kind of item.
CREATE TABLE turns (
    kind          text NOT NULL CHECK (kind IN ('reservation', 'disk')),
    key           uuid NOT NULL,
    next_turn_at  timestamptz,
    asked         bigint NOT NULL DEFAULT 0,
    settled       bigint NOT NULL DEFAULT 0,
    lease_token   uuid,
    lease_until   timestamptz,
    defects       integer NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, key)
);
COMMENT ON COLUMN turns.asked IS 'How often somebody other than the controller has asked for a turn.';
COMMENT ON COLUMN turns.settled IS 'How many of these had been asked for when the last turn began.';
CREATE INDEX turns_due ON turns (kind, next_turn_at) WHERE next_turn_at IS NOT NULL;
CREATE INDEX turns_asked ON turns (kind, key) WHERE asked > settled;
CREATE INDEX turns_leased ON turns (kind) WHERE lease_token IS NOT NULL;

INSERT INTO turns (kind, key, next_turn_at, defects)
SELECT 'reservation', reservation_id, next_turn_at, defects FROM reservations
UNION ALL
SELECT 'disk', disk_id, next_turn_at, defects FROM disks;

ALTER TABLE reservations
    DROP COLUMN lease_token, DROP COLUMN lease_until, DROP COLUMN next_turn_at, DROP COLUMN defects;
ALTER TABLE disks
    DROP COLUMN lease_token, DROP COLUMN lease_until, DROP COLUMN next_turn_at, DROP COLUMN defects;
