#!/bin/sh
# forget FOLDER: delete the folder of a submitted command, and the one around it if that is empty then.
set -eu

rm -rf -- "$1"
rmdir -- "$(dirname -- "$1")" 2> /dev/null || true
