#!/bin/sh
# output RUN LINES: the last lines of what a command has written, or all of it for no number.
#
# Exit code 3: no command was started here.
set -eu

if [ ! -e "$1/output" ]; then
    exit 3
fi
if [ -n "$2" ]; then
    tail -n "$2" "$1/output"
else
    cat "$1/output"
fi
