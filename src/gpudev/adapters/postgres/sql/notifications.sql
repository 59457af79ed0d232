-- Where a user is notified.
-- name: find_target
SELECT user_id, kind, url, secret, topics FROM notification_targets WHERE user_id = :user_id;

-- Notify a user there from now on.
-- name: set_target
INSERT INTO notification_targets (user_id, kind, url, secret, topics)
VALUES (:user_id, :kind, :url, :secret, :topics)
ON CONFLICT (user_id) DO UPDATE
SET kind = excluded.kind, url = excluded.url, secret = excluded.secret, topics = excluded.topics,
    updated_at = now();

-- Notify a user no more.
-- name: unset_target
DELETE FROM notification_targets WHERE user_id = :user_id;

-- Queue a notification that a user asked for as a test.
-- name: send_test
SELECT pgmq.send('notifications', jsonb_build_object('test_of', :user_id::integer));

-- Notifications to send, with what they are about, hidden for so many seconds from everybody else.
-- name: read
WITH m AS (
    SELECT msg_id, read_ct, enqueued_at,
           CASE WHEN pg_input_is_valid(message ->> 'reservation_id', 'uuid')
                THEN (message ->> 'reservation_id')::uuid END AS reservation_id,
           CASE WHEN pg_input_is_valid(message ->> 'number', 'integer')
                THEN (message ->> 'number')::integer END AS number,
           CASE WHEN pg_input_is_valid(message ->> 'test_of', 'integer')
                THEN (message ->> 'test_of')::integer END AS test_of
    FROM pgmq.read('notifications', :hidden_for, :limit)
)
SELECT m.msg_id, m.read_ct, m.enqueued_at, m.test_of IS NOT NULL AS is_test,
       m.test_of IS NOT NULL OR (m.reservation_id IS NOT NULL AND m.number IS NOT NULL) AS is_ours,
       e.kind AS event, e.number, e.fact, e.at,
       r.reservation_id, r.name, r.gpu_type, r.gpu_count, r.status, s.time_zone,
       u.username, t.user_id, t.kind, t.url, t.secret, t.topics
FROM m
LEFT JOIN reservation_events e ON e.reservation_id = m.reservation_id AND e.number = m.number
LEFT JOIN reservation_records r ON r.reservation_id = e.reservation_id
LEFT JOIN reservation_settings s ON s.reservation_id = e.reservation_id
LEFT JOIN api_users u ON u.user_id = coalesce(r.user_id, m.test_of)
LEFT JOIN notification_targets t ON t.user_id = u.user_id
ORDER BY m.msg_id;

-- Show a notification again after so many seconds.
-- name: retry_after
SELECT msg_id FROM pgmq.set_vt('notifications', :id::bigint, :seconds::integer);

-- Done with these notifications.
-- name: archive
SELECT pgmq.archive('notifications', :ids::bigint[]);
