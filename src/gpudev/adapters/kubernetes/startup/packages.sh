#!/bin/sh
# An SSH server, if the image has none. Nothing is installed where there is one.
set -eu

if command -v sshd > /dev/null || [ -x /usr/sbin/sshd ]; then
    exit 0
fi

echo "The image has no SSH server; installing one." >&2
if command -v apt-get > /dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends openssh-server sudo > /dev/null
elif command -v apk > /dev/null; then
    apk add --quiet openssh-client openssh-server sudo
elif command -v dnf > /dev/null; then
    dnf install -q -y openssh-clients openssh-server sudo
else
    echo "The image has no SSH server, and no package manager to install one with." >&2
    exit 1
fi
