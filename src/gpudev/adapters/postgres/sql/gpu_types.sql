-- name: offer
INSERT INTO gpu_types (gpu_type, instance_type, max_gpus, cpus, memory_gb, max_per_node, is_active)
SELECT gpu_type, instance_type, max_gpus, cpus, memory_gb, max_per_node, true
FROM unnest($1::text[], $2::text[], $3::integer[], $4::integer[], $5::integer[], $6::integer[])
    AS t (gpu_type, instance_type, max_gpus, cpus, memory_gb, max_per_node)
ON CONFLICT (gpu_type) DO UPDATE
SET instance_type = excluded.instance_type, max_gpus = excluded.max_gpus, cpus = excluded.cpus,
    memory_gb = excluded.memory_gb, max_per_node = excluded.max_per_node, is_active = true;

-- name: retire_others
UPDATE gpu_types SET is_active = false WHERE gpu_type <> ALL ($1::text[]) AND is_active;

-- name: list_all
SELECT gpu_type, instance_type, max_gpus, cpus, memory_gb FROM gpu_types ORDER BY gpu_type;

-- name: set_availability
UPDATE gpu_types
SET total_cluster_gpus = $2, available_gpus = $3, max_reservable = $4, full_nodes_available = $5,
    running_instances = $6, is_simulated = $7, next_start_at = $8, last_availability_update = $9,
    last_availability_updated_by = $10
WHERE gpu_type = $1
  AND (total_cluster_gpus, available_gpus, max_reservable, full_nodes_available, running_instances,
       is_simulated, next_start_at, last_availability_update IS NULL)
      IS DISTINCT FROM ($2, $3, $4, $5, $6, $7, $8, false);

-- name: list_availability
SELECT g.gpu_type, g.total_cluster_gpus, g.available_gpus, g.max_reservable, g.full_nodes_available,
       g.running_instances, g.is_simulated, g.next_start_at, g.max_per_node, g.last_availability_update,
       coalesce(w.requests, 0) AS queued_requests, coalesce(w.gpus, 0) AS queued_gpus
FROM gpu_types g
LEFT JOIN (SELECT gpu_type, count(*) AS requests, sum(gpu_count) AS gpus FROM reservations
           WHERE cleaned_at IS NULL AND status IN ('pending', 'queued') GROUP BY gpu_type) w USING (gpu_type)
WHERE g.is_active
ORDER BY g.gpu_type;
