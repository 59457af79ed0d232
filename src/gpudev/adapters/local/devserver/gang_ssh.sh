#!/bin/sh
# `ssh`, `scp` and `sftp` in a member of a gang that has no sandbox: they know the other members by name. The file
# is installed under each of these names.
folder=${0%/*}
exec "/usr/bin/${0##*/}" -F "${folder%/bin}/ssh_config" "$@"
