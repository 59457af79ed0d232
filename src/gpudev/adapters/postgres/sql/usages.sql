-- Note what was measured of the use of servers. A reservation knows only of the server that it has now.
-- name: add
WITH sampled AS (
    SELECT * FROM unnest(:ids::uuid[], :times::timestamptz[], :gpu_use::real[], :gpu_memory::real[], :ssh::real[],
                         :jupyter::real[], :cpu::real[], :simulated::boolean[], :idle_since::timestamptz[],
                         :signals::jsonb[])
        AS s (reservation_id, at, gpu_use, gpu_memory, ssh, jupyter, cpu, is_simulated, idle_since, signals)
), noted AS (
    UPDATE reservation_records r SET usage_at = s.at, idle_since = s.idle_since, idle_words = s.signals
    FROM sampled s
    WHERE r.reservation_id = s.reservation_id AND r.status = 'active' AND r.launched_at <= s.at
)
INSERT INTO reservation_usage (reservation_id, at, gpu_use, gpu_memory, ssh, jupyter, cpu, is_idle, is_simulated)
SELECT s.reservation_id, s.at, s.gpu_use, s.gpu_memory, s.ssh, s.jupyter, s.cpu, s.idle_since IS NOT NULL,
       s.is_simulated
FROM sampled s JOIN reservation_records r USING (reservation_id)
ON CONFLICT (reservation_id, at) DO NOTHING;

-- The use of a server over time, as so many averages at most.
-- name: list_points
WITH bounds AS (
    SELECT min(at) AS first, greatest(max(at) - min(at), interval '1 second') AS length
    FROM reservation_usage WHERE reservation_id = :reservation_id
), placed AS (
    SELECT u.*, least(:count::integer - 1,
                      floor(:count * extract(epoch FROM u.at - b.first)
                            / extract(epoch FROM b.length)))::integer AS slot
    FROM reservation_usage u, bounds b WHERE u.reservation_id = :reservation_id
)
SELECT min(at) AS at, avg(gpu_use)::float8 AS gpu_use, avg(gpu_memory)::float8 AS gpu_memory,
       avg(cpu)::float8 AS cpu, avg(is_idle::integer)::float8 AS idle_share
FROM placed GROUP BY slot ORDER BY slot;
