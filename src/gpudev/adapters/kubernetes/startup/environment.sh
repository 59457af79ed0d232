#!/bin/sh
# An environment, as /proc has it on standard input, as a line for sshd's configuration.
#
# What belongs to process 1 or to a login is left out, and so is what sshd cannot say: a line break.
set -eu

printf 'SetEnv'
sed -z -n \
    -e '/^HOME=/d' -e '/^USER=/d' -e '/^LOGNAME=/d' -e '/^SHELL=/d' -e '/^MAIL=/d' -e '/^TERM=/d' \
    -e '/^PWD=/d' -e '/^OLDPWD=/d' -e '/^SHLVL=/d' -e '/^_=/d' -e '/^HOSTNAME=/d' -e '/^KUBERNETES_/d' \
    -e '/\n/d' \
    -e 's/[\\"]/\\&/g' -e 's/.*/ "&"/' -e p | tr -d '\0'
printf '\n'
