#!/bin/sh
# stopper RUN GRACE: SIGTERM to everything that the command has started, and SIGKILL after GRACE seconds.
#
# Everything is what is in the command's session, except what runs the command: that writes down how it ended.
set -eu

run=$1
grace=$2
session=$(cat "$run/pid")

# The fields after the name of a process, which may have anything in it: state, parent, group, session. One
# program reads all files, because a machine may have thousands of processes.
list_members() {
    grep -l ") [^Z] [0-9]* [0-9]* $session [^)]*\$" /proc/[0-9]*/stat 2> /dev/null |
        sed -e 's,^/proc/,,' -e 's,/stat$,,' -e "/^$session\$/d"
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
