-- How long those waited who have started, as a part of what they were promised at first. The bounds of the
-- buckets come from whoever asks.
-- name: list_habits
SELECT slots, width_bucket(extract(epoch FROM promised_at - asked_at)::float8, $2::float8[]) AS bucket,
       percentile_cont(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (
           ORDER BY greatest(0, extract(epoch FROM started_at - asked_at)::float8)
                    / extract(epoch FROM promised_at - asked_at)::float8) AS ratios
FROM forecasts
WHERE gpu_type = $1 AND started_at >= $3 AND promised_at > asked_at
GROUP BY slots, bucket
HAVING count(*) >= $4;

-- A promise is kept by whoever starts within the step that it names.
-- name: measure_accuracy
SELECT gpu_type, count(*) AS started,
       avg((started_at < promised_at + $2::interval)::integer)::float8 AS promises_kept,
       avg(abs(extract(epoch FROM started_at - promised_at)) / 60)::float8 AS promise_error,
       avg(abs(extract(epoch FROM started_at - likely_at)) / 60)::float8 AS likely_error,
       (sum(extract(epoch FROM started_at - asked_at)) FILTER (WHERE likely_at IS NOT NULL)
        / nullif(sum(extract(epoch FROM likely_at - asked_at)), 0))::float8 AS bias,
       avg((started_at BETWEEN likely_from AND likely_to)::integer)::float8 AS coverage
FROM forecasts
WHERE started_at >= $1
GROUP BY gpu_type
ORDER BY gpu_type;

-- name: read_rooms
SELECT rooms FROM gpu_types WHERE gpu_type = $1;

-- name: set_rooms
UPDATE gpu_types SET rooms = $2 WHERE gpu_type = $1 AND rooms IS DISTINCT FROM $2;
