-- The use between `begin` and `end` by user, type or day: the time of each reservation, cut at midnights of UTC; one
-- that runs counts until `now`. Waits count on the day of the start, early releases on the day of the end. Of CPU types
-- a slot counts as a GPU.
-- name: usage
WITH running AS (
    SELECT r.reservation_id, r.gpu_type, u.username, greatest(r.gpu_count, 1) AS gpus,
           r.launched_at, r.launched_at - r.requested_at AS wait, r.ended_at,
           coalesce(r.ended_at < r.expires_at, false) AS is_early,
           greatest(r.launched_at, :begin) AS begun, least(coalesce(r.ended_at, :now), :end) AS ended
    FROM runs r JOIN api_users u USING (user_id)
    WHERE r.launched_at < :end::timestamptz AND coalesce(r.ended_at, :now::timestamptz) > :begin::timestamptz
), pieces AS (
    SELECT running.*, day, greatest(begun, day) AS piece_begun, least(ended, day + interval '1 day') AS piece_ended
    FROM running,
         generate_series(date_trunc('day', begun, 'UTC'), ended, interval '1 day') AS day
    WHERE day < ended
), measured AS (
    SELECT pieces.*, extract(epoch FROM piece_ended - piece_begun) / 3600 * gpus AS gpu_hours,
           (SELECT avg(s.is_idle::integer) FROM reservation_usage s
            WHERE s.reservation_id = pieces.reservation_id AND s.at >= piece_begun AND s.at < piece_ended) AS idle,
           launched_at >= piece_begun AND launched_at < piece_ended AS starts_here,
           ended_at = piece_ended AND is_early AS is_released_here
    FROM pieces
)
SELECT CASE :by::text WHEN 'user' THEN username WHEN 'type' THEN measured.gpu_type
            ELSE to_char(day AT TIME ZONE 'UTC', 'YYYY-MM-DD') END AS key,
       count(DISTINCT reservation_id)::integer AS reservations,
       sum(gpu_hours)::float8 AS gpu_hours,
       (extract(epoch FROM avg(wait) FILTER (WHERE starts_here)) / 60)::float8 AS mean_wait_minutes,
       (sum(idle * gpu_hours) / nullif(sum(gpu_hours) FILTER (WHERE idle IS NOT NULL), 0))::float8 AS idle_share,
       (count(*) FILTER (WHERE is_released_here))::integer AS early_releases,
       (sum(gpu_hours * price))::float8 AS cost
FROM measured LEFT JOIN unnest(:gpu_types::text[], :prices::float8[]) AS prices (gpu_type, price)
     ON prices.gpu_type = measured.gpu_type
GROUP BY 1 ORDER BY 1;
