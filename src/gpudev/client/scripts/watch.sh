#!/bin/sh
# watch RUN GRACE STOP STOPPER: stop the command GRACE seconds before the reservation ends, whoever else is there.
#
# The end is known from the notice that stands in the home: its name has the minutes that were left when it was
# written. An extension takes the notice away. One that is older than the command is not looked at.
set -eu

run=$1
grace=$2

is_running() {
    [ ! -e "$run/code" ] && kill -0 "$(cat "$run/pid")" 2> /dev/null
}

# Whether a notice says that no more than the grace is left.
is_due() {
    minutes=${1##*/WARN_EXPIRES_IN_}
    minutes=${minutes%MIN.txt}
    case $minutes in
        '' | *[!0-9]*) return 1 ;;
    esac
    [ -n "$(find "$1" -newer "$run/started" 2> /dev/null)" ] || return 1
    [ "$(($(date -r "$1" +%s) + minutes * 60 - $(date +%s)))" -le "$grace" ]
}

while is_running; do
    for notice in "$HOME"/WARN_EXPIRES_IN_*MIN.txt; do
        if is_due "$notice"; then
            sh -c "$3" stop "$run" time "$grace" "$4"
            exit 0
        fi
    done
    sleep 2
done
