#!/bin/sh
# stop RUN WHY GRACE STOPPER: have the command stopped, apart from this connection; WHY is `user` or `time`.
#
# The first one decides why. One that has ended already is left alone. `follow` tells when it is over.
set -eu
trap '' HUP

run=$(cd "$1" && pwd)
if [ -e "$run/code" ] || ! mkdir "$run/stopping" 2> /dev/null; then
    exit 0
fi
printf '%s\n' "$2" > "$run/why"
setsid sh -c "$4" gpu-dev-stop "$run" "$3" > /dev/null 2>&1 < /dev/null &
