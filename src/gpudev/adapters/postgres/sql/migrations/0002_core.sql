CREATE TABLE api_users (
    user_id     serial PRIMARY KEY,
    username    text NOT NULL UNIQUE,
    email       text,
    created_at  timestamptz NOT NULL DEFAULT now(),
    is_active   boolean NOT NULL DEFAULT true
);

CREATE TABLE api_keys (
    key_id       serial PRIMARY KEY,
    user_id      integer NOT NULL REFERENCES api_users,
    key_hash     bytea NOT NULL UNIQUE,
    key_prefix   text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    expires_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    is_active    boolean NOT NULL DEFAULT true,
    description  text
);
CREATE INDEX api_keys_of_user ON api_keys (user_id);

-- Proofs of identity that were spent, until they are too old to be accepted anyway.
CREATE TABLE used_proofs (
    proof       bytea PRIMARY KEY,
    expires_at  timestamptz NOT NULL
);

-- The one cluster whose reservations these are, where that is a single machine.
CREATE TABLE cluster_owner (
    is_only     boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    cluster_id  text NOT NULL
);

CREATE TABLE gpu_types (
    gpu_type                     text PRIMARY KEY,
    instance_type                text NOT NULL,
    max_gpus                     integer NOT NULL,
    cpus                         integer NOT NULL,
    memory_gb                    integer NOT NULL,
    max_per_node                 integer NOT NULL,
    is_active                    boolean NOT NULL,
    is_simulated                 boolean NOT NULL DEFAULT false,
    total_cluster_gpus           integer NOT NULL DEFAULT 0,
    available_gpus               integer NOT NULL DEFAULT 0,
    max_reservable               integer NOT NULL DEFAULT 0,
    full_nodes_available         integer NOT NULL DEFAULT 0,
    running_instances            integer NOT NULL DEFAULT 0,
    desired_capacity             integer NOT NULL DEFAULT 0,
    next_start_at                timestamptz,
    last_availability_update     timestamptz,
    last_availability_updated_by text
);
COMMENT ON COLUMN gpu_types.next_start_at IS 'When a new request for one unit would start; null: now, or never';

CREATE TABLE reservations (
    reservation_id      uuid PRIMARY KEY,
    user_id             integer NOT NULL REFERENCES api_users,
    name                text NOT NULL,
    gpu_type            text NOT NULL REFERENCES gpu_types,
    gpu_count           integer NOT NULL CHECK (gpu_count >= 0),
    duration            interval NOT NULL CHECK (duration > interval '0'),
    env_vars            jsonb NOT NULL DEFAULT '{}',
    ssh_public_keys     text[] NOT NULL DEFAULT '{}',
    cli_version         text NOT NULL DEFAULT '',
    created_at          timestamptz NOT NULL,

    status              text NOT NULL CONSTRAINT reservations_status CHECK (status IN (
                            'pending', 'queued', 'preparing', 'active', 'expired', 'cancelled', 'failed')),
    reason              text CONSTRAINT reservations_reason CHECK (reason IN (
                            'waiting_for_capacity', 'waiting_in_line', 'no_nodes', 'placement_lost',
                            'time_is_up', 'cancelled_by_user', 'start_failed', 'start_timed_out',
                            'server_failed', 'pod_deleted', 'internal_error')),
    detail              text NOT NULL DEFAULT '',
    node_name           text,
    node_ip             text,
    node_port           integer,
    ssh_host_keys       text[] NOT NULL DEFAULT '{}',
    placed_at           timestamptz,
    launched_at         timestamptz,
    expires_at          timestamptz,
    reservation_ended   timestamptz,
    cancelled_at        timestamptz,
    cleaned_at          timestamptz,
    last_updated        timestamptz NOT NULL,
    version             integer NOT NULL DEFAULT 1,
    event_count         integer NOT NULL DEFAULT 0,

    -- Where a waiting request stands. Changing these is no change of the reservation.
    queue_position      integer,
    estimated_start_at  timestamptz,
    last_queue_update   timestamptz,

    -- Whose turn it is, and when the next one comes.
    lease_token         uuid,
    lease_until         timestamptz,
    next_turn_at        timestamptz,
    defects             integer NOT NULL DEFAULT 0,

    CONSTRAINT reservations_end CHECK (
        (reservation_ended IS NULL) = (status IN ('pending', 'queued', 'preparing', 'active'))),
    CONSTRAINT reservations_clean CHECK (cleaned_at IS NULL OR reservation_ended IS NOT NULL),
    CONSTRAINT reservations_place CHECK (node_name IS NOT NULL OR status NOT IN ('preparing', 'active')),
    CONSTRAINT reservations_address CHECK (
        (node_ip IS NULL) = (node_port IS NULL) AND (status <> 'active' OR node_ip IS NOT NULL))
);

-- Pods, hosts and files are named by these characters, for ever.
CREATE UNIQUE INDEX reservations_id8 ON reservations (left(reservation_id::text, 8));
CREATE UNIQUE INDEX reservations_live_name ON reservations (user_id, name)
    WHERE status IN ('pending', 'queued', 'preparing', 'active');
CREATE INDEX reservations_of_user ON reservations (user_id, created_at DESC);
CREATE INDEX reservations_newest ON reservations (created_at DESC);
CREATE INDEX reservations_unfinished ON reservations (gpu_type) WHERE cleaned_at IS NULL;
CREATE INDEX reservations_due ON reservations (next_turn_at) WHERE next_turn_at IS NOT NULL;

CREATE TABLE reservation_events (
    reservation_id  uuid NOT NULL REFERENCES reservations,
    number          integer NOT NULL,
    kind            text NOT NULL CONSTRAINT reservation_events_kind CHECK (kind IN (
                        'submitted', 'queued', 'placed', 'requeued', 'active', 'expired', 'cancelled',
                        'failed', 'cleaned')),
    reason          text,
    message         text NOT NULL,
    at              timestamptz NOT NULL,
    elapsed         interval NOT NULL,
    PRIMARY KEY (reservation_id, number)
);
COMMENT ON COLUMN reservation_events.elapsed IS 'Time since the event before';

CREATE TABLE operations (
    operation_id    uuid PRIMARY KEY,
    reservation_id  uuid NOT NULL REFERENCES reservations,
    kind            text NOT NULL CONSTRAINT operations_kind CHECK (kind IN ('cancel')),
    status          text NOT NULL DEFAULT 'requested' CONSTRAINT operations_status CHECK (
                        status IN ('requested', 'done', 'failed')),
    error           text NOT NULL DEFAULT '',
    requested_at    timestamptz NOT NULL,
    finished_at     timestamptz
);
CREATE INDEX operations_waiting ON operations (reservation_id) WHERE status = 'requested';

-- A reservation as the rules see it: the one list of columns that reads share.
CREATE VIEW reservation_rows AS
SELECT r.reservation_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count, r.duration, r.created_at,
       r.status, r.reason, r.detail, r.env_vars, r.ssh_public_keys, r.cli_version, r.node_name, r.node_ip,
       r.node_port, r.ssh_host_keys, r.queue_position, r.estimated_start_at, r.last_queue_update, r.placed_at,
       r.launched_at, r.expires_at, r.reservation_ended, r.cancelled_at, r.cleaned_at, r.last_updated,
       r.version
FROM reservations r JOIN api_users u USING (user_id);
