#!/bin/sh
# runner RUN FOLDER COMMAND: the command in the login shell's environment; its exit code goes to a file.
#
# The code is there as a whole or not at all, and after all of the output. A command that is being stopped has
# ended when all that it started has; see `stopper`. What waits for that is in a session of its own: it is not a
# part of the command, and the stopper would wait for it and kill it.
set -eu

cd "$2"
code=0
"${SHELL:-/bin/sh}" -l -c "$3" || code=$?
if [ -d "$1/stopping" ]; then
    until [ -e "$1/stopped" ]; do
        setsid sleep 0.1 || true
    done
fi
printf '%s\n' "$code" > "$1/code.new"
mv "$1/code.new" "$1/code"
