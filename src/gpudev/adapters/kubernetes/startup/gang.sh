#!/bin/sh
# How the members of a gang log in to each other: with the key of the gang, and strictly checked.
#
# Nothing of it is in the home, which belongs to the user. Where there is no gang there is nothing to do.
set -eu

keys=${GPU_DEV_KEYS:-/etc/gpu-dev/keys}
root=${GPU_DEV_ROOT:-}
run=/run/gpu-dev
configuration=/etc/ssh/ssh_config

if [ ! -e "$keys/gang_key" ]; then
    exit 0
fi

mkdir -p "$root$run" "$root$configuration.d"
install -o dev -g dev -m 600 "$keys/gang_key" "$root$run/gang_key"
install -m 644 "$keys/gang_hosts" "$root$run/gang_hosts"

{
    echo "Host $(echo "$MULTINODE_HOSTS" | tr , ' ')"
    echo "    User dev"
    echo "    Port 22"
    echo "    IdentityFile $run/gang_key"
    echo "    UserKnownHostsFile $run/gang_hosts"
    echo "    StrictHostKeyChecking yes"
} > "$root$configuration.d/gpu-dev.conf"

# Some images have a configuration that does not look there.
touch "$root$configuration"
if ! grep -qi "^ *include $configuration.d/" "$root$configuration"; then
    printf 'Include %s.d/*.conf\n' "$configuration" > "$root$run/ssh_config"
    cat "$root$configuration" >> "$root$run/ssh_config"
    cat "$root$run/ssh_config" > "$root$configuration"
fi
