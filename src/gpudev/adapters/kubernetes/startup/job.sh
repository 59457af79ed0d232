#!/bin/sh
# What the runner of `gpu-dev submit` left: lines with its exit code, why it was stopped and whether its results
# were fetched, then `output` and the end of what it wrote.
#
# The first 8 characters of the reservation's id come on standard input. Nothing is written for no command.
set -eu

most=32768
read -r id
run=${GPU_DEV_HOME:-/home/dev}/submit/$id/run

# A plain file, not a link: nobody waits for a pipe.
is_file() {
    [ -f "$run/$1" ] && [ ! -L "$run/$1" ]
}

if ! is_file output; then
    exit 0
fi
for name in code why; do
    if is_file "$name"; then
        printf '%s %s\n' "$name" "$(head -c 16 "$run/$name" | tr -dc 'a-z0-9')"
    fi
done
if is_file fetched; then
    echo fetched
fi
echo output
tail -c "$most" "$run/output"
