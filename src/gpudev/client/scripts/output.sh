#!/bin/sh
# output RUN LINES: the offset at which the last lines of a command's output begin; 0 for no number of lines.
#
# `follow` writes what is from there on. Exit code 3: no command was started here.
set -eu

if [ ! -e "$1/output" ]; then
    exit 3
fi
offset=0
if [ -n "$2" ]; then
    size=$(wc -c < "$1/output")
    offset=$((size - $(head -c "$size" "$1/output" | tail -n "$2" | wc -c)))
fi
printf '%d\n' "$offset"
