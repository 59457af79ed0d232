#!/bin/sh
# Write one backup of the database, and forget the oldest ones. A file with its final name is whole and readable.
#
# From the environment: PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE, BACKUP_DIR, BACKUPS_KEPT.
set -eu
umask 077

file="$BACKUP_DIR/gpudev-$(date -u +%Y%m%dT%H%M%SZ).dump"
rm -f "$BACKUP_DIR"/*.part
pg_dump --format=custom --file="$file.part"
pg_restore --list "$file.part" >/dev/null
sync "$file.part"
mv "$file.part" "$file"
echo "wrote $file ($(wc -c <"$file") bytes)"

# Their names are in the order of their times.
find "$BACKUP_DIR" -maxdepth 1 -name 'gpudev-*.dump' | sort -r | tail -n +"$((BACKUPS_KEPT + 1))" |
    while IFS= read -r old; do
        rm "$old"
        echo "removed $old"
    done
