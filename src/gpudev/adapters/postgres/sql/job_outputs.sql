-- Keep the end of the output of a command.
-- name: keep
INSERT INTO job_outputs (reservation_id, output) VALUES (:reservation_id, :output)
ON CONFLICT (reservation_id) DO UPDATE SET output = excluded.output;

-- The output that was kept.
-- name: find
SELECT output FROM job_outputs WHERE reservation_id = :reservation_id;
