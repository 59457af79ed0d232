#!/bin/sh
# start RUN FOLDER COMMAND GRACE RUNNER WATCH STOP STOPPER: run the command in the folder, apart from this
# connection, and watch the end of its time.
#
# Once: who calls again, because the answer was lost on the way, starts nothing. What is known of it is in the
# folder RUN: `output`, `pid` of what runs it, `why` it was stopped, and at the end `code`. Earlier commands whose
# results were fetched are deleted here.
set -eu
trap '' HUP

mkdir -p -- "$1" "$2"
run=$(cd "$1" && pwd)
if ! mkdir "$run/started" 2> /dev/null; then
    exit 0
fi
for fetched in "$run"/../../*/run/fetched; do
    if [ -e "$fetched" ]; then
        rm -rf -- "${fetched%/run/fetched}"
    fi
done
setsid sh -c "$5" gpu-dev-submit "$run" "$2" "$3" > "$run/output" 2>&1 < /dev/null &
printf '%s\n' "$!" > "$run/pid"
setsid sh -c "$6" gpu-dev-watch "$run" "$4" "$7" "$8" > /dev/null 2>&1 < /dev/null &
