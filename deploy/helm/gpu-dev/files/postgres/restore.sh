#!/bin/sh
# Bring a backup into an empty database, whole or not at all. A database with anything in it is left alone.
#
# From the environment: PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE, BACKUP_DIR, and BACKUP, the name of a file
# there; empty: the newest.
set -eu

if [ -n "${BACKUP:-}" ]; then
    file="$BACKUP_DIR/$BACKUP"
else
    file=$(find "$BACKUP_DIR" -maxdepth 1 -name 'gpudev-*.dump' | sort | tail -n 1)
fi
if [ -z "$file" ] || [ ! -f "$file" ]; then
    echo "restore.sh: there is no backup ${BACKUP:-} in $BACKUP_DIR" >&2
    exit 1
fi

relations=$(psql --no-psqlrc --tuples-only --no-align --command="
    SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'")
if [ "$relations" != 0 ]; then
    echo "restore.sh: the database is not empty ($relations relations); make a new one for the restore" >&2
    exit 1
fi
# The backup names the role of the service in its grants. Migrations give the role its password.
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 <<'SQL'
SELECT 'CREATE ROLE gpudev_app LOGIN'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gpudev_app') \gexec
SQL
pg_restore --exit-on-error --single-transaction --no-owner --dbname="$PGDATABASE" "$file"
echo "restored $file"
