#!/bin/sh
# result RUN: the exit code of a command that is over, and why it was stopped, if it was.
set -eu

cat "$1/code"
if [ -e "$1/why" ]; then
    cat "$1/why"
fi
