#!/bin/sh
# stopper RUN GRACE: SIGTERM to everything that the command has started, and SIGKILL after GRACE seconds.
#
# Everything is what is in the command's session, except what runs the command: that writes down how it ended.
set -eu

run=$1
grace=$2
session=$(cat "$run/pid")

# The fields after the name of a process, which may have anything in it: state, parent, group, session.
list_members() {
    for process in /proc/[0-9]*; do
        if [ "${process#/proc/}" != "$session" ] &&
            sed 's/.*) //' "$process/stat" 2> /dev/null | grep -q "^[^Z] [0-9]* [0-9]* $session "; then
            printf '%s\n' "${process#/proc/}"
        fi
    done
}

send() {
    for member in $(list_members); do
        kill "-$1" "$member" 2> /dev/null || true
    done
}

send TERM
end=$(($(date +%s) + grace))
while [ -n "$(list_members)" ]; do
    if [ "$(date +%s)" -ge "$end" ]; then
        send KILL
    fi
    sleep 0.2
done
: > "$run/stopped"
