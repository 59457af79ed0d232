#!/bin/sh
# fetched PLACE BYTES: delete the files of a command whose results were fetched, and note that they were.
#
# How it ended and the last BYTES of its output stay: they are read when the reservation ends. The next command
# deletes them.
set -eu

rm -rf -- "$1/files"
tail -c "$2" "$1/run/output" > "$1/run/output.new"
mv "$1/run/output.new" "$1/run/output"
: > "$1/run/fetched"
