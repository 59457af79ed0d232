#!/bin/sh
# start RUN FOLDER COMMAND RUNNER: run the command in the folder, apart from this connection.
#
# Once: who calls again, because the answer was lost on the way, starts nothing. What is known of it is in the
# folder RUN: `output`, `pid` of what runs it, and at the end `code`.
set -eu
trap '' HUP

mkdir -p -- "$1" "$2"
run=$(cd "$1" && pwd)
if ! mkdir "$run/started" 2> /dev/null; then
    exit 0
fi
setsid sh -c "$4" gpu-dev-submit "$run" "$2" "$3" > "$run/output" 2>&1 < /dev/null &
printf '%s\n' "$!" > "$run/pid"
