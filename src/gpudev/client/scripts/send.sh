#!/bin/sh
# send FOLDER: pack what is in a folder to standard output.
set -eu

tar -c -C "$1" -f - .
