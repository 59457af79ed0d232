#!/bin/sh
# receive FOLDER MARK: unpack standard input into a folder, then touch the mark, if one is named.
#
# What changes later is newer than the mark.
set -eu

mkdir -p -- "$1"
tar -x -o -C "$1" -f -
if [ -n "$2" ]; then
    mkdir -p -- "$(dirname -- "$2")"
    : > "$2"
fi
