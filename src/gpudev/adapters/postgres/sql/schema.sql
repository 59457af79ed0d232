-- The whole schema in one place, to read. The migrations are what is applied, and `tests/migration/test_schema.py`
-- proves that they add up to this. PGMQ, which is installed first, is not shown.
--
-- What happened and what is to be said of it is a fact, {"key": ..., "data": {...}}, as jsonb: `gpudev/texts` makes a
-- sentence of it where it is shown.

-- People and their keys ------------------------------------------------------------------------------------------

CREATE TABLE api_users (
    user_id     serial PRIMARY KEY,
    username    text NOT NULL UNIQUE,
    email       text,
    created_at  timestamptz NOT NULL DEFAULT now(),
    is_active   boolean NOT NULL DEFAULT true,

    -- Who the user is according to AWS. A user without these logs in in another way, and nobody else may take the
    -- username.
    aws_account  text,
    aws_role     text,
    aws_name     text,
    aws_arn      text,
    CONSTRAINT api_users_identity CHECK (num_nulls(aws_account, aws_role, aws_name, aws_arn) IN (0, 4)),

    -- The GitHub user that this user has proved to be.
    github_user       text CONSTRAINT api_users_github_user UNIQUE,
    github_proved_at  timestamptz,
    CONSTRAINT api_users_github CHECK (num_nulls(github_user, github_proved_at) IN (0, 2))
);
COMMENT ON COLUMN api_users.aws_name IS 'As AWS spells it; the username is made from it';
COMMENT ON COLUMN api_users.github_user IS 'In lower case: GitHub does not tell cases apart';

CREATE TABLE api_keys (
    key_id         serial PRIMARY KEY,
    user_id        integer NOT NULL REFERENCES api_users,
    key_hash       bytea NOT NULL UNIQUE,
    key_prefix     text NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz NOT NULL,
    last_used_at   timestamptz,
    is_active      boolean NOT NULL DEFAULT true,
    description    text,
    login_ends_at  timestamptz NOT NULL DEFAULT now() + interval '24 hours',
    rotated_at     timestamptz
);
COMMENT ON COLUMN api_keys.login_ends_at IS 'End of the login that this key and those before it began with';
COMMENT ON COLUMN api_keys.rotated_at IS 'When its one successor was issued; null: it has none';
CREATE INDEX api_keys_of_user ON api_keys (user_id);
CREATE INDEX api_keys_end ON api_keys (expires_at);

-- Keys that are not revoked, and whose they are. The reader checks the end of the key and whether the user is active.
-- `identity` names admins: a username alone may belong to anybody who came first.
CREATE VIEW callers AS
SELECT k.key_hash, k.expires_at, u.user_id, u.username, u.is_active,
       CASE WHEN u.aws_account IS NULL THEN 'local:' || u.username
            ELSE 'aws:' || u.aws_account || '/' || u.aws_role || '/' || u.aws_name END AS identity
FROM api_keys k JOIN api_users u USING (user_id)
WHERE k.is_active;

-- Proofs of identity that were used, until they are too old to be accepted anyway.
CREATE TABLE used_proofs (
    proof       bytea PRIMARY KEY,
    expires_at  timestamptz NOT NULL
);

-- Challenges that were issued and not signed yet, by their hash; each is for one user and one GitHub user.
CREATE TABLE github_challenges (
    challenge_hash  bytea PRIMARY KEY,
    user_id         integer NOT NULL REFERENCES api_users,
    github_user     text NOT NULL,
    expires_at      timestamptz NOT NULL
);

-- The keys of GitHub users as they were read last, for when GitHub does not answer.
CREATE TABLE github_keys (
    github_user  text PRIMARY KEY,
    public_keys  text[] NOT NULL,
    fetched_at   timestamptz NOT NULL
);
COMMENT ON COLUMN github_keys.github_user IS 'In lower case: GitHub does not tell cases apart';

CREATE TABLE login_failures (
    origin  text NOT NULL,
    at      timestamptz NOT NULL
);
COMMENT ON COLUMN login_failures.origin IS 'An IPv4 address, or an IPv6 network of 64 bits';
CREATE INDEX login_failures_of_origin ON login_failures (origin, at);

-- The cluster ----------------------------------------------------------------------------------------------------

-- The one cluster whose reservations these are, where that is a single machine.
CREATE TABLE cluster_owner (
    is_only     boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    cluster_id  text NOT NULL
);

CREATE TABLE gpu_types (
    -- From the catalogue.
    gpu_type       text PRIMARY KEY,
    instance_type  text NOT NULL,
    max_gpus       integer NOT NULL,
    cpus           integer NOT NULL,
    memory_gb      integer NOT NULL,
    max_per_node   integer NOT NULL,
    is_active      boolean NOT NULL,
    is_simulated   boolean NOT NULL DEFAULT false,

    -- Availability, as it was measured last.
    total_cluster_gpus            integer NOT NULL DEFAULT 0,
    available_gpus                integer NOT NULL DEFAULT 0,
    max_reservable                integer NOT NULL DEFAULT 0,
    full_nodes_available          integer NOT NULL DEFAULT 0,
    running_instances             integer NOT NULL DEFAULT 0,
    desired_capacity              integer NOT NULL DEFAULT 0,
    last_availability_update      timestamptz,
    last_availability_updated_by  text,

    -- What admission saw last, for those who cannot ask the cluster.
    next_start_at  timestamptz,
    rooms          jsonb NOT NULL DEFAULT '[]',
    nodes          jsonb NOT NULL DEFAULT '[]'
);
COMMENT ON COLUMN gpu_types.next_start_at IS 'When a new request for one unit would start; null: now, or never';
COMMENT ON COLUMN gpu_types.rooms IS 'Nodes in service: name, slots, and how many of these others than reservations have';
COMMENT ON COLUMN gpu_types.nodes IS 'Nodes of this type: name, slots, and whether the cluster itself would place there';

-- Nodes that an admin takes out of service: nothing new is placed there, and what runs there stays until its end.
CREATE TABLE drains (
    node_name   text PRIMARY KEY,
    gpu_type    text NOT NULL,
    reason      text NOT NULL,
    drained_by  text NOT NULL,
    drained_at  timestamptz NOT NULL,
    emptied_at  timestamptz
);
COMMENT ON TABLE drains IS 'Nodes that are being taken out of service; one that is not here is as the cluster says';
COMMENT ON COLUMN drains.emptied_at IS 'When the last reservation there had ended; null: some hold room';

-- Which controllers run, and which of their chores keep failing: one row per host, written every few seconds.
CREATE TABLE controllers (
    name     text PRIMARY KEY,
    beat_at  timestamptz NOT NULL,
    failing  text[] NOT NULL
);

-- Reservations ---------------------------------------------------------------------------------------------------

-- One record has the parts of a reservation that are listed and searched together, each as a group of columns.
CREATE TABLE reservation_records (
    -- Spec: who requested what. Written once, by submit.
    reservation_id  uuid CONSTRAINT reservations_pkey PRIMARY KEY,
    user_id         integer NOT NULL CONSTRAINT reservations_user_id_fkey REFERENCES api_users,
    name            text NOT NULL,
    gpu_type        text NOT NULL CONSTRAINT reservations_gpu_type_fkey REFERENCES gpu_types,
    gpu_count       integer NOT NULL CONSTRAINT reservations_gpu_count_check CHECK (gpu_count >= 0),
    node_count      integer NOT NULL DEFAULT 1 CONSTRAINT reservations_node_count_check CHECK (node_count >= 1),
    node_labels     jsonb NOT NULL DEFAULT '{}',
    duration        interval NOT NULL CONSTRAINT reservations_duration_check CHECK (duration > interval '0'),
    start_at        timestamptz,
    disk_id         uuid,
    disk_name       text NOT NULL DEFAULT '',
    warning         jsonb,
    created_at      timestamptz NOT NULL,
    requested_at    timestamptz,

    -- State: written by turns and admission; each write bumps the version and appends an event.
    status        text NOT NULL CONSTRAINT reservations_status CHECK (status IN (
                      'pending', 'queued', 'preparing', 'active', 'stopped', 'expired', 'cancelled',
                      'failed')),
    reason        text CONSTRAINT reservations_reason CHECK (reason IN (
                      'waiting_for_capacity', 'waiting_in_line', 'no_nodes', 'waiting_for_quota', 'booked', 'disk_busy',
                      'placement_lost', 'stopped_by_user', 'stopped_by_admin', 'stopped_too_long', 'time_is_up',
                      'went_idle', 'cancelled_by_user', 'cancelled_by_admin', 'command_finished', 'start_failed', 'start_timed_out', 'start_stalled', 'queue_stalled',
                      'queued_too_long', 'server_failed', 'image_unavailable', 'pod_deleted', 'node_lost', 'evicted',
                      'out_of_memory', 'disk_failed', 'internal_error')),
    detail        jsonb,
    placed_at     timestamptz,
    launched_at   timestamptz,
    expires_at    timestamptz,
    stopped_at    timestamptz,
    used          interval NOT NULL DEFAULT '0',
    ended_at      timestamptz,
    cleaned_at    timestamptz,
    outcome       text CONSTRAINT reservations_outcome CHECK (
                      outcome IN ('succeeded', 'failed', 'stopped', 'timed_out')),
    exit_code     integer CONSTRAINT reservations_exit_code CHECK (exit_code BETWEEN 0 AND 255),
    last_updated  timestamptz NOT NULL,
    version       integer NOT NULL DEFAULT 1,
    event_count   integer NOT NULL DEFAULT 0,

    -- Location, beside the members: written by admission and turns.
    port_slot  text,
    volume_id  text,

    -- Forecast: where a waiting request stands. Written by admission; no change of the version.
    queue_position      integer,
    estimated_start_at  timestamptz,
    planned_nodes       text[] NOT NULL DEFAULT '{}',
    likely_from         timestamptz,
    likely_to           timestamptz,
    last_queue_update   timestamptz,

    -- Memory: what its controller has done and need not repeat. Written by its turns; no change of the version.
    warned_minutes   integer,
    told_notices     jsonb,
    extension_error  jsonb,
    oom_count        integer NOT NULL DEFAULT 0,
    last_oom_at      timestamptz,
    progress         jsonb,
    progress_at      timestamptz,
    stale_since      timestamptz,
    driven_at        timestamptz,
    kept_until       timestamptz,
    idle_warned_at   timestamptz,
    idle_warning     jsonb,
    drain_warning    jsonb,

    -- Use, as it was measured last; the measurements are in `reservation_usage`.
    usage_at    timestamptz,
    idle_since  timestamptz,
    idle_words  jsonb,

    CONSTRAINT reservations_end CHECK (
        (ended_at IS NULL) = (status IN ('pending', 'queued', 'preparing', 'active', 'stopped'))),
    CONSTRAINT reservations_clean CHECK (cleaned_at IS NULL OR ended_at IS NOT NULL),
    CONSTRAINT reservations_place CHECK (placed_at IS NOT NULL OR status NOT IN ('preparing', 'active')),
    CONSTRAINT reservations_likely CHECK (num_nulls(likely_from, likely_to) IN (0, 2))
);
COMMENT ON COLUMN reservation_records.node_count IS 'How many nodes it takes; more than one is a gang';
COMMENT ON COLUMN reservation_records.start_at IS 'Booked for this time; null: as soon as there is room';
COMMENT ON COLUMN reservation_records.requested_at IS 'When it was requested again; null: it never was';
COMMENT ON COLUMN reservation_records.stopped_at IS 'When it was stopped; null: not since it was last requested';
COMMENT ON COLUMN reservation_records.used IS 'How long its earlier servers were active';
COMMENT ON COLUMN reservation_records.outcome IS 'What became of its command; null: it has none, or it has not ended';
COMMENT ON COLUMN reservation_records.exit_code IS 'Of its command; null: not known';
COMMENT ON COLUMN reservation_records.port_slot IS 'Name of a ready address in the cluster; null: one is made';
COMMENT ON COLUMN reservation_records.planned_nodes IS
    'While it waits: where room is kept for it; none: nothing is promised';
COMMENT ON COLUMN reservation_records.warned_minutes IS 'The nearest warning that was sent for the present end';
COMMENT ON COLUMN reservation_records.told_notices IS 'The notices that stand on its server';
COMMENT ON COLUMN reservation_records.progress IS 'What the cluster last said of its start';
COMMENT ON COLUMN reservation_records.stale_since IS 'Since when it waits without being renewed, and is driven';
COMMENT ON COLUMN reservation_records.drain_warning IS 'As it was told; null: its nodes stay in service';

-- Pods, hosts and files are named by these characters.
CREATE UNIQUE INDEX reservations_id8 ON reservation_records (left(reservation_id::text, 8));
CREATE UNIQUE INDEX reservations_live_name ON reservation_records (user_id, name)
    WHERE status IN ('pending', 'queued', 'preparing', 'active', 'stopped');
-- However many requests name a disk at once, one gets it. One that was started again waits for its disk.
CREATE UNIQUE INDEX reservations_live_disk ON reservation_records (disk_id)
    WHERE status IN ('preparing', 'active') OR (status IN ('pending', 'queued') AND used = interval '0');
-- To find who has a disk or wants it.
CREATE INDEX reservations_disk ON reservation_records (disk_id)
    WHERE status IN ('pending', 'queued', 'preparing', 'active');
-- One address, one reservation; it is removed before the record is clean.
CREATE UNIQUE INDEX reservations_port_slot ON reservation_records (port_slot)
    WHERE port_slot IS NOT NULL AND cleaned_at IS NULL;
-- To find a reservation by its name among all that there ever were.
CREATE INDEX reservations_name ON reservation_records (name, user_id);
-- A page and its total without a sort, and the total without reading the rows.
CREATE INDEX reservations_of_user ON reservation_records (user_id, created_at DESC, reservation_id)
    INCLUDE (status, gpu_type);
CREATE INDEX reservations_newest ON reservation_records (created_at DESC);
CREATE INDEX reservations_unfinished ON reservation_records (gpu_type) WHERE cleaned_at IS NULL;
CREATE INDEX reservations_waiting ON reservation_records (gpu_type, created_at)
    WHERE status IN ('pending', 'queued');

CREATE TABLE reservation_settings (
    reservation_id   uuid PRIMARY KEY REFERENCES reservation_records ON DELETE CASCADE,
    image            text NOT NULL,
    env_vars         jsonb NOT NULL,
    ssh_public_keys  text[] NOT NULL,
    github_user      text NOT NULL,
    client_version   text NOT NULL,
    time_zone        text NOT NULL DEFAULT ''
);
COMMENT ON TABLE reservation_settings IS 'How the dev server is set up; written once';

CREATE TABLE reservation_members (
    reservation_id  uuid NOT NULL REFERENCES reservation_records ON DELETE CASCADE,
    rank            integer NOT NULL CHECK (rank >= 0),
    node_name       text NOT NULL,
    host            text,
    port            integer,
    host_keys       text[] NOT NULL,
    PRIMARY KEY (reservation_id, rank),
    CONSTRAINT reservation_members_address CHECK ((host IS NULL) = (port IS NULL))
);
COMMENT ON TABLE reservation_members IS 'The part of a reservation on each of its nodes; none before it is placed';

-- A reservation may have had servers before the present one. Each of them is a run: what it took, and for how long.
CREATE TABLE reservation_runs (
    reservation_id  uuid NOT NULL REFERENCES reservation_records ON DELETE CASCADE,
    user_id         integer NOT NULL REFERENCES api_users,
    gpu_type        text NOT NULL REFERENCES gpu_types,
    gpu_count       integer NOT NULL,
    requested_at    timestamptz NOT NULL,
    launched_at     timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    ended_at        timestamptz NOT NULL,
    PRIMARY KEY (reservation_id, launched_at)
);
COMMENT ON TABLE reservation_runs IS 'The servers that a reservation had before its present one';
CREATE INDEX reservation_runs_of_user ON reservation_runs (user_id, gpu_type);

-- Every server that there is or was, for reports and quotas.
CREATE VIEW runs AS
SELECT reservation_id, user_id, gpu_type, gpu_count, coalesce(requested_at, created_at) AS requested_at, launched_at,
       expires_at, ended_at
FROM reservation_records WHERE launched_at IS NOT NULL
UNION ALL
SELECT reservation_id, user_id, gpu_type, gpu_count, requested_at, launched_at, expires_at, ended_at
FROM reservation_runs;

CREATE TABLE reservation_events (
    reservation_id  uuid NOT NULL REFERENCES reservation_records,
    number          integer NOT NULL,
    kind            text NOT NULL CONSTRAINT reservation_events_kind CHECK (kind IN (
                        'submitted', 'queued', 'placed', 'progress', 'requeued', 'replanned', 'active', 'warning',
                        'warned', 'extended', 'extension_refused', 'idle_warned', 'idle_over', 'kept',
                        'out_of_memory', 'node_leaves', 'node_stays', 'finished', 'stopped', 'released',
                        'resumed', 'expired', 'cancelled', 'failed', 'cleaned')),
    reason          text,
    fact            jsonb NOT NULL,
    at              timestamptz NOT NULL,
    elapsed         interval NOT NULL,
    PRIMARY KEY (reservation_id, number)
);
COMMENT ON COLUMN reservation_events.elapsed IS 'Time since the event before';

-- What users and admins have requested of a reservation.
CREATE TABLE operations (
    operation_id    uuid PRIMARY KEY,
    reservation_id  uuid NOT NULL REFERENCES reservation_records,
    kind            text NOT NULL CONSTRAINT operations_kind CHECK (kind IN (
                        'cancel', 'extend', 'keep', 'stop')),
    status          text NOT NULL DEFAULT 'requested' CONSTRAINT operations_status CHECK (
                        status IN ('requested', 'done', 'failed')),
    error           jsonb,
    requested_at    timestamptz NOT NULL,
    finished_at     timestamptz,
    is_by_admin     boolean NOT NULL DEFAULT false,

    -- What the request says: for how long, from when on, and why.
    length      interval,
    not_before  timestamptz,
    reason      text NOT NULL DEFAULT ''
);
COMMENT ON COLUMN operations.is_by_admin IS 'Requested for the owner by somebody else';
CREATE INDEX operations_waiting ON operations (reservation_id) WHERE status = 'requested';

-- What was measured of the use of each server, about one row per minute. Null: not known.
CREATE TABLE reservation_usage (
    reservation_id  uuid NOT NULL REFERENCES reservation_records,
    at              timestamptz NOT NULL,
    gpu_use         real,
    gpu_memory      real,
    ssh             real,
    jupyter         real,
    cpu             real,
    is_idle         boolean NOT NULL,
    is_simulated    boolean NOT NULL,
    PRIMARY KEY (reservation_id, at)
);

CREATE TABLE job_outputs (
    reservation_id  uuid PRIMARY KEY REFERENCES reservation_records ON DELETE CASCADE,
    output          text NOT NULL
);
COMMENT ON TABLE job_outputs IS 'The end of what the command of a reservation wrote, once the reservation has ended';

-- The first promise to each request that had to wait, and when it started: later forecasts learn from it.
CREATE TABLE forecasts (
    reservation_id  uuid PRIMARY KEY REFERENCES reservation_records,
    gpu_type        text NOT NULL,
    slots           integer NOT NULL,
    length          interval NOT NULL,
    asked_at        timestamptz NOT NULL,
    promised_at     timestamptz NOT NULL,
    likely_from     timestamptz,
    likely_at       timestamptz,
    likely_to       timestamptz,
    started_at      timestamptz
);
COMMENT ON COLUMN forecasts.slots IS 'GPUs on all nodes together, 1 for a CPU slot';
CREATE INDEX forecasts_started ON forecasts (gpu_type, started_at) WHERE started_at IS NOT NULL;

-- How many reservations each user has of each type. Several rows for one count, so that writers do not wait in line.
CREATE TABLE reservation_counts (
    user_id   integer NOT NULL REFERENCES api_users,
    gpu_type  text NOT NULL,
    slot      integer NOT NULL,
    counted   integer NOT NULL,
    PRIMARY KEY (user_id, gpu_type, slot)
) WITH (fillfactor = 50);

-- A whole reservation, but for the name of its user: one row, with the first member in columns, since most have no other.
CREATE VIEW reservation_parts AS
SELECT r.*, s.image, s.env_vars, s.ssh_public_keys, s.github_user, s.client_version, s.time_zone,
       m.node_name AS member_node, m.host AS member_host, m.port AS member_port, m.host_keys AS member_keys,
       CASE WHEN r.node_count > 1 THEN (
           SELECT jsonb_agg(jsonb_build_object('node', o.node_name, 'host', o.host, 'port', o.port,
                                               'keys', o.host_keys) ORDER BY o.rank)
           FROM reservation_members o WHERE o.reservation_id = r.reservation_id AND o.rank > 0) END AS other_members
FROM reservation_records r JOIN reservation_settings s USING (reservation_id)
LEFT JOIN reservation_members m ON m.reservation_id = r.reservation_id AND m.rank = 0;

-- A whole reservation, as the service reads it.
CREATE VIEW reservation_rows AS
SELECT p.*, u.username FROM reservation_parts p JOIN api_users u USING (user_id);

-- For operators: the columns have the names that the API uses.
CREATE VIEW reservations AS
SELECT r.reservation_id, r.reservation_id AS job_id, r.user_id, u.username, r.name, r.gpu_type, r.gpu_count,
       r.node_count, r.duration, extract(epoch FROM r.duration)::float8 / 3600 AS duration_hours, r.created_at,
       r.start_at, r.node_labels, r.status, r.reason, r.detail, r.detail AS current_detailed_status,
       CASE WHEN r.status = 'failed' THEN r.detail END AS failure_reason, r.placed_at, r.launched_at, r.expires_at,
       r.stopped_at, r.ended_at AS reservation_ended, CASE WHEN r.status = 'cancelled' THEN r.ended_at END AS cancelled_at,
       r.cleaned_at, r.last_updated, r.version, r.event_count, r.outcome, r.exit_code, r.queue_position,
       r.estimated_start_at, r.planned_nodes, r.likely_from, r.likely_to, r.last_queue_update, r.warning,
       r.warned_minutes, r.extension_error, r.oom_count, r.last_oom_at, r.progress, r.progress_at, r.kept_until,
       r.idle_warned_at, r.idle_warning, r.drain_warning, r.usage_at, r.idle_since, r.idle_words, r.disk_id,
       r.disk_name, r.volume_id AS ebs_volume_id, r.port_slot, s.image, s.env_vars, s.ssh_public_keys,
       s.github_user, s.client_version AS cli_version, 'gpu-dev-' || left(r.reservation_id::text, 8) AS pod_name,
       m.node_name, m.host AS node_ip, m.port AS node_port, m.host_keys AS ssh_host_keys
FROM reservation_records r JOIN api_users u USING (user_id)
JOIN reservation_settings s USING (reservation_id)
LEFT JOIN reservation_members m ON m.reservation_id = r.reservation_id AND m.rank = 0;

-- The mark of a reservation is another one after every write to its record. The transaction alone would say that,
-- but for one case: its number is used again when a replica takes over that had not heard of it.
CREATE VIEW reservation_marks AS
SELECT reservation_id, user_id, created_at, status, gpu_type,
       uuid_send(reservation_id) || timestamptz_send(last_updated) || xidsend(xmin) AS mark
FROM reservation_records;

-- The availability of each type on offer, with what waits for it.
CREATE VIEW availability_rows AS
SELECT g.gpu_type, g.total_cluster_gpus, g.available_gpus, g.max_reservable, g.full_nodes_available,
       g.running_instances, g.is_simulated, g.next_start_at, g.max_per_node, g.last_availability_update,
       coalesce(w.requests, 0) AS queued_requests, coalesce(w.gpus, 0) AS queued_gpus
FROM gpu_types g LEFT JOIN (
    SELECT gpu_type, count(*) AS requests, sum(gpu_count) AS gpus
    FROM reservation_records WHERE cleaned_at IS NULL AND status IN ('pending', 'queued')
    GROUP BY gpu_type) w USING (gpu_type)
WHERE g.is_active;

-- Disks ----------------------------------------------------------------------------------------------------------

-- A disk: a named home that outlives its reservations.
CREATE TABLE disks (
    -- What it is.
    disk_id             uuid PRIMARY KEY,
    user_id             integer NOT NULL REFERENCES api_users,
    name                text NOT NULL CONSTRAINT disks_name_form CHECK (name ~ '^[A-Za-z0-9_-]{1,50}$'),
    size_gb             integer NOT NULL CHECK (size_gb > 0),
    created_at          timestamptz NOT NULL,
    source_disk_id      uuid REFERENCES disks,
    source_snapshot_id  text,

    -- State: written by its turns, admission and reconciliation; each write bumps the version.
    state           text NOT NULL CONSTRAINT disks_state CHECK (state IN (
                        'creating', 'available', 'attaching', 'in_use', 'releasing', 'snapshotting',
                        'soft_deleted', 'purging', 'purged')),
    reservation_id  uuid REFERENCES reservation_records,
    last_used       timestamptz,
    released_at     timestamptz,
    deleted_at      timestamptz,
    delete_date     timestamptz,
    problem         jsonb,
    version         integer NOT NULL DEFAULT 1,
    event_count     integer NOT NULL DEFAULT 0,

    -- Its volume and snapshots.
    ebs_volume_id     text,
    zone              text NOT NULL DEFAULT '',
    is_dirty          boolean NOT NULL DEFAULT false,
    snapshot_number   integer NOT NULL DEFAULT 0,
    snapshot_count    integer NOT NULL DEFAULT 0,
    last_snapshot_at  timestamptz,

    -- The operation that was requested last.
    operation_id      uuid,
    operation_status  text NOT NULL DEFAULT '',
    operation_error   jsonb,

    -- What the last reconciliation saw.
    is_attached           boolean NOT NULL DEFAULT false,
    has_pending_snapshot  boolean NOT NULL DEFAULT false,

    -- What is on the newest snapshot, where listings are kept outside the database; or, where snapshots cannot be
    -- read, what was on the last server, until the snapshot is complete.
    latest_snapshot_content_s3  text,
    home_listing                text,
    home_used_bytes             bigint,

    -- The state in the words of the API.
    in_use         boolean NOT NULL GENERATED ALWAYS AS (
                       is_attached OR state IN ('attaching', 'in_use', 'releasing')) STORED,
    is_backing_up  boolean NOT NULL GENERATED ALWAYS AS (
                       has_pending_snapshot OR state = 'snapshotting') STORED,
    is_deleted     boolean NOT NULL GENERATED ALWAYS AS (
                       state IN ('soft_deleted', 'purging', 'purged')) STORED,

    CONSTRAINT disks_holder CHECK (
        reservation_id IS NOT NULL OR state NOT IN ('attaching', 'in_use', 'releasing')),
    CONSTRAINT disks_delete_date CHECK (
        (delete_date IS NOT NULL) = (state IN ('soft_deleted', 'purging', 'purged')))
);
COMMENT ON COLUMN disks.home_listing IS 'Files in the home of the last server, until a snapshot of them is complete';
CREATE UNIQUE INDEX disks_name ON disks (user_id, name) WHERE state NOT IN ('soft_deleted', 'purging', 'purged');
CREATE UNIQUE INDEX disks_of_reservation ON disks (reservation_id) WHERE reservation_id IS NOT NULL;
CREATE INDEX disks_copies ON disks (source_disk_id) WHERE source_disk_id IS NOT NULL;
ALTER TABLE reservation_records ADD CONSTRAINT reservations_disk_id_fkey FOREIGN KEY (disk_id) REFERENCES disks;

CREATE TABLE snapshots (
    snapshot_id    text PRIMARY KEY,
    disk_id        uuid NOT NULL REFERENCES disks,
    ebs_volume_id  text NOT NULL,
    started_at     timestamptz NOT NULL,
    size_gb        integer NOT NULL,
    used_bytes     bigint,
    content        text,
    content_s3     text,
    deleted_at     timestamptz
);
COMMENT ON COLUMN snapshots.content IS 'The file listing, where listings are kept in the database';
CREATE INDEX snapshots_of_disk ON snapshots (disk_id, started_at DESC) WHERE deleted_at IS NULL;

CREATE TABLE disk_operations (
    operation_id  uuid PRIMARY KEY,
    disk_id       uuid NOT NULL REFERENCES disks,
    kind          text NOT NULL CONSTRAINT disk_operations_kind CHECK (kind IN (
                      'create', 'clone', 'grow', 'rename', 'delete', 'restore')),
    status        text NOT NULL DEFAULT 'requested' CONSTRAINT disk_operations_status CHECK (
                      status IN ('requested', 'done', 'failed')),
    error         jsonb,
    size_gb       integer,
    requested_at  timestamptz NOT NULL,
    finished_at   timestamptz
);
CREATE INDEX disk_operations_waiting ON disk_operations (disk_id) WHERE status = 'requested';

CREATE TABLE disk_events (
    disk_id  uuid NOT NULL REFERENCES disks,
    number   integer NOT NULL,
    kind     text NOT NULL CONSTRAINT disk_events_kind CHECK (kind IN (
                 'created', 'attached', 'released', 'snapshot', 'moved', 'grown', 'renamed', 'deleted',
                 'restored', 'purged', 'imported', 'synced', 'problem')),
    fact     jsonb NOT NULL,
    at       timestamptz NOT NULL,
    PRIMARY KEY (disk_id, number)
);

CREATE TABLE disk_reconciliations (
    number               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at                   timestamptz NOT NULL,
    reconciled_by        text NOT NULL,
    aws_volumes          integer NOT NULL,
    db_records           integer NOT NULL,
    synced               integer NOT NULL,
    updated              integer NOT NULL,
    created              integer NOT NULL,
    errors               integer NOT NULL,
    orphaned_db_active   integer NOT NULL,
    orphaned_db_deleted  integer NOT NULL,
    remarks              jsonb NOT NULL
);
COMMENT ON TABLE disk_reconciliations IS 'What each reconciliation with the storage counted and remarked';

-- A whole disk, as the service reads it, with the live reservation that names it.
CREATE VIEW disk_rows AS
SELECT d.*, u.username,
       (SELECT r.reservation_id FROM reservation_records r
        WHERE r.disk_id = d.disk_id AND r.status IN ('pending', 'queued', 'preparing', 'active')
        ORDER BY r.status IN ('preparing', 'active') DESC, r.created_at, r.reservation_id LIMIT 1) AS named_by
FROM disks d JOIN api_users u USING (user_id);

-- Turns ----------------------------------------------------------------------------------------------------------

-- When each item is worked on next, and which process has leased it. One table for every kind of item.
CREATE TABLE turns (
    kind          text NOT NULL CHECK (kind IN ('reservation', 'disk')),
    key           uuid NOT NULL,
    next_turn_at  timestamptz,
    asked         bigint NOT NULL DEFAULT 0,
    settled       bigint NOT NULL DEFAULT 0,
    lease_token   uuid,
    lease_until   timestamptz,
    defects       integer NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, key)
);
COMMENT ON COLUMN turns.asked IS 'How often somebody other than the controller has asked for a turn.';
COMMENT ON COLUMN turns.settled IS 'How many of these had been asked for when the last turn began.';
CREATE INDEX turns_due ON turns (kind, next_turn_at) WHERE next_turn_at IS NOT NULL;
CREATE INDEX turns_asked ON turns (kind, key) WHERE asked > settled;
CREATE INDEX turns_leased ON turns (kind) WHERE lease_token IS NOT NULL;

-- Queues and notifications ---------------------------------------------------------------------------------------

SELECT pgmq.create('gpu_reservations'), pgmq.create('gpu_reservations_dead');
SELECT pgmq.create('disk_operations'), pgmq.create('disk_operations_dead');
SELECT pgmq.create('notifications'), pgmq.create('notifications_dead');

-- Messages about items on which our code fails.
CREATE VIEW dead_letters AS
SELECT 'gpu_reservations' AS queue, msg_id, message, headers ->> 'error' AS error, enqueued_at
FROM pgmq.q_gpu_reservations_dead
UNION ALL
SELECT 'disk_operations', msg_id, message, headers ->> 'error', enqueued_at FROM pgmq.q_disk_operations_dead
UNION ALL
SELECT 'notifications', msg_id, message, headers ->> 'error', enqueued_at FROM pgmq.q_notifications_dead;

-- Where users want to be notified, and of what. The secret signs what is sent, so it is stored as it is.
CREATE TABLE notification_targets (
    user_id     integer PRIMARY KEY REFERENCES api_users,
    kind        text NOT NULL CONSTRAINT notification_targets_kind CHECK (kind IN ('webhook', 'slack')),
    url         text NOT NULL,
    secret      text NOT NULL,
    topics      text[] NOT NULL,
    updated_at  timestamptz NOT NULL DEFAULT now()
);

-- Audit ----------------------------------------------------------------------------------------------------------

-- Who did what. Rows are only ever added. `action` has no list of allowed words, because the log keeps what older
-- versions wrote and takes what newer ones write.
CREATE TABLE audit_entries (
    entry_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    username  text NOT NULL,
    action    text NOT NULL,
    target    text NOT NULL,
    address   text NOT NULL,
    outcome   text NOT NULL CONSTRAINT audit_entries_outcome CHECK (outcome IN ('done', 'refused')),
    detail    text NOT NULL
);
CREATE INDEX audit_entries_at ON audit_entries (at);
CREATE INDEX audit_entries_of_user ON audit_entries (username, entry_id);

-- Each seal is a hash over the digests of its entries and over the seal before.
CREATE TABLE audit_seals (
    number         integer PRIMARY KEY,
    first_id       bigint NOT NULL,
    last_id        bigint NOT NULL,
    entries        integer NOT NULL,
    known_until    timestamptz NOT NULL,
    previous_hash  bytea NOT NULL,
    hash           bytea NOT NULL
);
COMMENT ON COLUMN audit_seals.known_until IS 'Entries that are older than this by minutes are all sealed';

CREATE TABLE audit_digests (
    entry_id     bigint PRIMARY KEY REFERENCES audit_entries,
    seal_number  integer NOT NULL REFERENCES audit_seals,
    digest       bytea NOT NULL
);
CREATE INDEX audit_digests_of_seal ON audit_digests (seal_number);

CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_seals
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_digests
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

-- Migrations -----------------------------------------------------------------------------------------------------

CREATE TABLE schema_migrations (
    number      integer PRIMARY KEY,
    name        text NOT NULL,
    checksum    text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
);
