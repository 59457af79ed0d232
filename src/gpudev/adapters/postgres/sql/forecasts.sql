-- How long those waited who have started, as a part of what they were promised at first. The bounds of the
-- buckets come from whoever asks. The quantiles are placed so that the next one is within them as often as they say,
-- of few samples as of many; `domain/queue.py` says the same.
-- name: list_habits
WITH waits AS (
    SELECT slots, width_bucket(extract(epoch FROM promised_at - asked_at)::float8, :bounds::float8[]) AS bucket,
           (SELECT count(*) FROM unnest(:lengths::interval[]) AS bound WHERE length > bound)::integer AS length_class,
           greatest(0, extract(epoch FROM started_at - asked_at)::float8)
               / extract(epoch FROM promised_at - asked_at)::float8 AS ratio
    FROM forecasts
    WHERE gpu_type = :gpu_type AND started_at >= :since AND promised_at > asked_at
), kinds AS (
    SELECT * FROM waits UNION ALL SELECT slots, bucket, :any_length::integer, ratio FROM waits
), counted AS (
    SELECT *, count(*) OVER (PARTITION BY slots, bucket, length_class) AS n FROM kinds
)
SELECT slots, bucket, length_class,
       percentile_cont(ARRAY[(0.1 * (n + 1) - 1) / (n - 1), 0.5, (0.9 * (n + 1) - 1) / (n - 1)]::float8[])
           WITHIN GROUP (ORDER BY ratio) AS ratios
FROM counted
WHERE n >= :min_samples
GROUP BY slots, bucket, length_class, n;

-- How good the promises of each type were. A promise is kept by whoever starts within the step that it names.
-- name: measure_accuracy
SELECT gpu_type, count(*) AS started,
       avg((started_at < promised_at + :step::interval)::integer)::float8 AS promises_kept,
       avg(abs(extract(epoch FROM started_at - promised_at)) / 60)::float8 AS promise_error,
       avg(abs(extract(epoch FROM started_at - likely_at)) / 60)::float8 AS likely_error,
       (sum(extract(epoch FROM started_at - asked_at)) FILTER (WHERE likely_at IS NOT NULL)
        / nullif(sum(extract(epoch FROM likely_at - asked_at)), 0))::float8 AS bias,
       avg((started_at BETWEEN likely_from AND likely_to)::integer)::float8 AS coverage
FROM forecasts
WHERE started_at >= :since
GROUP BY gpu_type
ORDER BY gpu_type;

-- The nodes in service as admission saw them last.
-- name: read_rooms
SELECT rooms FROM gpu_types WHERE gpu_type = :gpu_type;

-- Note the nodes in service, if they have changed.
-- name: set_rooms
UPDATE gpu_types SET rooms = :rooms WHERE gpu_type = :gpu_type AND rooms IS DISTINCT FROM :rooms;

-- GPU-hours, each counted half as much for every half-life that has passed since: the integral of that over the
-- time of each reservation. `domain/policy.py` says the same.
-- name: list_use
SELECT user_id,
       sum(greatest(1, gpu_count) * (:half_life::float8 / 3600 / ln(2))
           * (power(2, least(0, extract(epoch FROM coalesce(ended_at, :now) - :now)::float8) / :half_life)
              - power(2, extract(epoch FROM launched_at - :now)::float8 / :half_life)))::float8 AS gpu_hours
FROM runs
WHERE gpu_type = :gpu_type AND coalesce(ended_at, :now) >= :since::timestamptz
GROUP BY user_id;

-- What was asked for once and is over: given back early, extended, or not waited for.
-- name: list_submissions
SELECT created_at AS at, 'user-' || user_id AS "user", greatest(1, gpu_count / node_count) AS gpus,
       duration AS length, node_count AS nodes,
       CASE WHEN ended_at < expires_at THEN ended_at - launched_at END AS used,
       coalesce(greatest(interval '0', expires_at - launched_at - duration), interval '0') AS extends,
       CASE WHEN launched_at IS NULL THEN ended_at - created_at END AS gives_up
FROM reservation_records
WHERE gpu_type = :gpu_type AND created_at >= :since AND ended_at IS NOT NULL AND used = interval '0'
ORDER BY created_at, reservation_id;
