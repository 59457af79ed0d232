#!/bin/sh
# Start a PostgreSQL server as `primary` or `replica`. On an empty volume it is made first, in a folder beside its
# place, so that an interrupted start leaves nothing half made behind.
#
# From the environment: PGDATA, CONFIG_DIR, SOCKET_DIR, TLS_DIR (with tls.crt and tls.key), POSTGRES_PASSWORD,
# REPLICATION_PASSWORD, SYNCHRONOUS_STANDBYS (of a primary), PRIMARY_HOST and PRIMARY_PORT (of a replica), PORT, and how
# a replica verifies its primary: PGSSLMODE and PGSSLROOTCERT.
set -eu
umask 077

kind=$1
new="$PGDATA.new"
replication="host=$PRIMARY_HOST port=$PRIMARY_PORT user=replicator"

make_primary() {
    initdb --pgdata="$new" --username=postgres --auth=trust --encoding=UTF8 --locale=C --data-checksums
    # Not yet on the network, and without waiting for a replica that cannot be there.
    pg_ctl start --pgdata="$new" --wait --silent --log="$new/first-start.log" --options="\
        -c listen_addresses='' -c unix_socket_directories='$SOCKET_DIR' -c synchronous_standby_names=''"
    psql --no-psqlrc --quiet --host="$SOCKET_DIR" --username=postgres --dbname=postgres \
        --file="$CONFIG_DIR/roles.sql"
    pg_ctl stop --pgdata="$new" --wait --silent --mode=fast
}

make_replica() {
    # Beside a new primary it would fail, and be started again ever more slowly.
    until pg_isready --quiet --host="$PRIMARY_HOST" --port="$PRIMARY_PORT"; do
        sleep 1
    done
    PGPASSWORD=$REPLICATION_PASSWORD pg_basebackup --pgdata="$new" --dbname="$replication" \
        --wal-method=stream --checkpoint=fast
    # Only now: after a promotion the server has taken this away, and must not find it again.
    touch "$new/standby.signal"
}

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    rm -rf "$new"
    case $kind in
        primary) make_primary ;;
        replica) make_replica ;;
        *) echo "start.sh: primary or replica, not $kind" >&2; exit 2 ;;
    esac
    mkdir -p "$(dirname "$PGDATA")"
    mv "$new" "$PGDATA"
elif [ ! -e "$PGDATA/standby.signal" ]; then
    # A server that an earlier version of the chart made: migrations could not create the role of the service.
    echo "ALTER ROLE gpudev CREATEROLE" |
        postgres --single -D "$PGDATA" -c config_file="$CONFIG_DIR/postgresql.conf" postgres >/dev/null
fi

# The password of the replica is in its environment alone, not in a file of the volume.
export PGPASSWORD="$REPLICATION_PASSWORD"
exec postgres -D "$PGDATA" \
    -c config_file="$CONFIG_DIR/postgresql.conf" \
    -c hba_file="$CONFIG_DIR/pg_hba.conf" \
    -c unix_socket_directories="$SOCKET_DIR" \
    -c port="$PORT" \
    -c ssl=on \
    -c ssl_cert_file="$TLS_DIR/tls.crt" \
    -c ssl_key_file="$TLS_DIR/tls.key" \
    -c synchronous_standby_names="$SYNCHRONOUS_STANDBYS" \
    -c primary_conninfo="$replication application_name=gpu_dev_replica"
