#!/bin/sh
# Let exactly the notices on standard input stand in the home, and show new ones on every terminal.
#
# Each notice is two lines, the name of its file and its text; an empty line ends them. It runs as the user, who
# may have put anything in the place of a notice: nothing is followed or written into, a file is made under a
# name of its own and moved. Terminals come first, so that whoever is killed in between shows it twice
# rather than never.
set -eu

terminals=${GPU_DEV_TERMINALS:-/dev/pts}
fresh=.gpu-dev-notice
standing=/

cd "${GPU_DEV_HOME:-/home/dev}"

is_notice() {
    case $1 in
        WARN_IDLE.txt | WARN_NODE_LEAVES.txt | OOM_DETECTED.txt) return 0 ;;
        WARN_EXPIRES_IN_*MIN.txt) ;;
        *) return 1 ;;
    esac
    minutes=${1#WARN_EXPIRES_IN_}
    case ${minutes%MIN.txt} in
        '' | *[!0-9]*) return 1 ;;
    esac
}

stands() {
    [ -f "$1" ] && [ ! -L "$1" ] && [ "$(head -c 4096 "$1")" = "$2" ]
}

# A terminal that is stopped takes nothing; it is not waited for long.
show() {
    for terminal in "$terminals"/[0-9]*; do
        if [ -w "$terminal" ]; then
            printf '\r\n%s\r\n' "$1" | timeout 1 tee "$terminal" > /dev/null 2>&1 &
        fi
    done
    wait
}

write() {
    rm -f "$fresh"
    (umask 022 && set -C && printf '%s\n' "$2" > "$fresh")
    rm -f "$1"
    mv "$fresh" "$1"
}

while IFS= read -r name && [ -n "$name" ] && IFS= read -r text; do
    if ! is_notice "$name"; then
        echo "$name is not the name of a notice." >&2
        exit 2
    fi
    standing="$standing$name/"
    if ! stands "$name" "$text"; then
        show "$text"
        write "$name" "$text"
    fi
done

for name in WARN_EXPIRES_IN_*MIN.txt WARN_IDLE.txt WARN_NODE_LEAVES.txt OOM_DETECTED.txt; do
    case $standing in
        */"$name"/*) continue ;;
    esac
    if is_notice "$name" && { [ ! -d "$name" ] || [ -L "$name" ]; }; then
        rm -f "$name"
    fi
done
