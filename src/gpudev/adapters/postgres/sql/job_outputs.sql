-- name: keep
INSERT INTO job_outputs (reservation_id, output) VALUES ($1, $2)
ON CONFLICT (reservation_id) DO UPDATE SET output = excluded.output;

-- name: find
SELECT output FROM job_outputs WHERE reservation_id = $1;
