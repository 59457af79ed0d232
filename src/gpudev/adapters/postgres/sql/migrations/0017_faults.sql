-- Which controllers run, and which of their chores keep failing: one row a host, written every few seconds.
CREATE TABLE controllers (
    name     text PRIMARY KEY,
    beat_at  timestamptz NOT NULL,
    failing  text[] NOT NULL
);

-- The other queues have one already.
SELECT pgmq.create('notifications_dead');
