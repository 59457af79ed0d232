#!/bin/sh
# send_changes FOLDER MARK NAME...: pack the files of a folder that changed since the mark was touched.
#
# What has one of the names is left out, with all that is in it. The time of change is looked at, not that of
# the contents, so that a file that was moved here or copied with its date counts as new.
set -eu

folder=$1
mark=$2
case $mark in
    /*) ;;
    *) mark=$PWD/$mark ;;
esac
shift 2
# Each name becomes words for find, from the front of the list to its end.
for name do
    set -- "$@" -name "$name" -prune -o
    shift
done

cd "$folder"
# Not by a pipe, which would hide it if find fails.
find . "$@" \( -type f -o -type l \) -cnewer "$mark" -print0 > "$mark.changed"
tar -c --null -f - -T "$mark.changed"
