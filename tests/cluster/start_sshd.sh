# Makes the user `dev`, lets in the key in $AUTHORIZED_KEY, and becomes sshd with host keys of its own.
set -eu
useradd --create-home --shell /bin/bash dev
install --directory --owner=dev --mode=0700 ~dev/.ssh
printf '%s\n' "$AUTHORIZED_KEY" > ~dev/.ssh/authorized_keys
chown dev: ~dev/.ssh/authorized_keys
ssh-keygen -A
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e
