#!/bin/sh
# runner RUN FOLDER COMMAND: the command in the login shell's environment; its exit code goes to a file.
#
# The code is there as a whole or not at all, and after all of the output. A command that is being stopped has
# ended when all that it started has; see `stopper`.
set -eu

cd "$2"
code=0
"${SHELL:-/bin/sh}" -l -c "$3" || code=$?
if [ -d "$1/stopping" ]; then
    until [ -e "$1/stopped" ]; do
        sleep 0.1
    done
fi
printf '%s\n' "$code" > "$1/code.new"
mv "$1/code.new" "$1/code"
