#!/bin/sh
# The user that one logs in as: its entry, its home, and sudo without a password.
#
# Entries are written by hand, because images differ in the programs that would write them. Nothing that
# is in the home is touched, however big it is: only the folder itself is given to its user.
set -eu

login=dev
id=1081
home=/home/dev
root=${GPU_DEV_ROOT:-}

shell=/bin/sh
for candidate in /bin/zsh /usr/bin/zsh /bin/bash; do
    if [ -x "$root$candidate" ]; then
        shell=$candidate
    fi
done

# replace FILE LINE: the line is the only one of its name in the file.
replace() {
    touch "$root$1"
    grep -v "^$login:" "$root$1" > "$root$1.gpu-dev" || true
    printf '%s\n' "$2" >> "$root$1.gpu-dev"
    cat "$root$1.gpu-dev" > "$root$1"
    rm "$root$1.gpu-dev"
}

replace /etc/group "$login:x:$id:"
replace /etc/passwd "$login:x:$id:$id:gpu-dev:$home:$shell"
# No password fits a star, and unlike an exclamation mark it does not lock the account.
replace /etc/shadow "$login:*:19000:0:99999:7:::"
chmod 640 "$root/etc/shadow"

mkdir -p "$root$home" "$root/workspace/.cache"
chown "$id:$id" "$root$home" "$root/workspace" "$root/workspace/.cache"
chmod 755 "$root$home"
if [ -d "$root/dev/shm" ]; then
    chmod 1777 "$root/dev/shm"
fi

if [ -d "$root/etc/skel" ] && [ ! -e "$root$home/.bashrc" ]; then
    for file in "$root"/etc/skel/.[!.]* "$root"/etc/skel/*; do
        if [ -e "$file" ]; then
            cp -R "$file" "$root$home/"
            chown -R "$id:$id" "$root$home/${file##*/}"
        fi
    done
fi

if [ -d "$root/etc/sudoers.d" ]; then
    printf '%s ALL=(ALL:ALL) NOPASSWD: ALL\n' "$login" > "$root/etc/sudoers.d/gpu-dev"
    chmod 440 "$root/etc/sudoers.d/gpu-dev"
fi
