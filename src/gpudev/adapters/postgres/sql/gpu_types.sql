-- Offer these types, as the catalogue has them.
-- name: offer
INSERT INTO gpu_types (gpu_type, instance_type, max_gpus, cpus, memory_gb, max_per_node, is_active)
SELECT gpu_type, instance_type, max_gpus, cpus, memory_gb, max_per_node, true
FROM unnest(:gpu_types::text[], :instance_types::text[], :max_gpus::integer[], :cpus::integer[],
            :memory_gb::integer[], :max_per_node::integer[])
    AS t (gpu_type, instance_type, max_gpus, cpus, memory_gb, max_per_node)
ON CONFLICT (gpu_type) DO UPDATE
SET instance_type = excluded.instance_type, max_gpus = excluded.max_gpus, cpus = excluded.cpus,
    memory_gb = excluded.memory_gb, max_per_node = excluded.max_per_node, is_active = true;

-- Offer no other types.
-- name: retire_others
UPDATE gpu_types SET is_active = false WHERE gpu_type <> ALL (:gpu_types::text[]) AND is_active;

-- All types that there ever were.
-- name: list_all
SELECT gpu_type, instance_type, max_gpus, cpus, memory_gb FROM gpu_types ORDER BY gpu_type;

-- Note the availability of a type, if it has changed.
-- name: set_availability
UPDATE gpu_types
SET total_cluster_gpus = :total, available_gpus = :available, max_reservable = :max_reservable,
    full_nodes_available = :full_nodes, running_instances = :running, is_simulated = :is_simulated,
    next_start_at = :next_start_at, last_availability_update = :now, last_availability_updated_by = :updated_by
WHERE gpu_type = :gpu_type
  AND (total_cluster_gpus, available_gpus, max_reservable, full_nodes_available, running_instances,
       is_simulated, next_start_at, last_availability_update IS NULL)
      IS DISTINCT FROM (:total, :available, :max_reservable, :full_nodes, :running, :is_simulated,
                        :next_start_at, false);

-- The availability of all types on offer.
-- name: list_availability
SELECT * FROM availability_rows ORDER BY gpu_type;

-- The same, with the user to whom a key belongs; no row: the key is not valid.
-- name: list_availability_for_key
SELECT caller.user_id AS caller_id, caller.username AS caller_name, caller.is_active AS caller_is_active,
       caller.identity AS caller_identity,
       room.*
FROM callers caller LEFT JOIN availability_rows room ON true
WHERE caller.key_hash = :key_hash AND caller.expires_at > :now
ORDER BY room.gpu_type;

-- Note how many machines the cloud has and wants of each type.
-- name: set_capacity
UPDATE gpu_types
SET desired_capacity = c.desired, running_instances = c.running, last_availability_update = :now,
    last_availability_updated_by = :updated_by
FROM unnest(:gpu_types::text[], :desired::integer[], :running::integer[]) AS c (gpu_type, desired, running)
WHERE gpu_types.gpu_type = c.gpu_type;
