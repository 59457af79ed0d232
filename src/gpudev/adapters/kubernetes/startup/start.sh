#!/bin/sh
# Process 1 of a dev server: make the account, then become the SSH server.
#
# It runs as root in the container, at every start of it, so every step can be repeated. What it is given
# comes as environment and files, see adapters/kubernetes/manifests. sshd ends at once when it is told to,
# and reaps what its sessions leave behind, so it can be process 1 itself.
set -eu

startup=${GPU_DEV_STARTUP:-/etc/gpu-dev/startup}
keys=${GPU_DEV_KEYS:-/etc/gpu-dev/keys}
run=/run/gpu-dev

mkdir -p "$run" /run/sshd
chmod 755 "$run" /run/sshd

sh "$startup/packages.sh"
sh "$startup/account.sh"

# sshd wants a folder that only root can write to, which a mounted one is not.
cp "$keys/authorized_keys" "$run/authorized_keys"
chmod 644 "$run/authorized_keys"

sh "$startup/gang.sh"

# Sessions get the environment of the image and of the pod, and login shells its PATH.
cp "$startup/sshd_config" "$run/sshd_config"
sh "$startup/environment.sh" < /proc/self/environ >> "$run/sshd_config"
chmod 600 "$run/sshd_config"
printf '%s\n' "$PATH" > "$run/path"
mkdir -p /etc/profile.d
cp "$startup/profile.sh" /etc/profile.d/gpu-dev.sh

sh "$startup/greeting.sh" > /etc/motd 2>/dev/null &

sshd=$(command -v sshd || echo /usr/sbin/sshd)
exec "$sshd" -D -e -f "$run/sshd_config"
