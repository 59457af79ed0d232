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
SELECT * FROM availability_rows ORDER BY gpu_type;

-- name: list_availability_for_key
SELECT caller.user_id AS caller_id, caller.username AS caller_name, caller.is_active AS caller_is_active,
       caller.identity AS caller_identity,
       room.*
FROM callers caller LEFT JOIN availability_rows room ON true
WHERE caller.key_hash = $1 AND caller.expires_at > $2
ORDER BY room.gpu_type;

-- name: set_capacity
UPDATE gpu_types
SET desired_capacity = c.desired, running_instances = c.running, last_availability_update = $4,
    last_availability_updated_by = $5
FROM unnest($1::text[], $2::integer[], $3::integer[]) AS c (gpu_type, desired, running)
WHERE gpu_types.gpu_type = c.gpu_type;
