#!/bin/sh
# follow RUN OFFSET SECONDS: write the output of a command from an offset on, as it comes, until the command is
# over, or until the seconds are; none for ever.
#
# Exit code 0: it is over and all was written. 3: it is gone without an exit code. 4: the seconds are over.
set -eu

run=$1
offset=$2
end=
if [ -n "$3" ]; then
    end=$(($(date +%s) + $3))
fi

is_alive() {
    kill -0 "$(cat "$run/pid")" 2> /dev/null
}

# What was written up to now. Bytes that come meanwhile are left for the next look.
write_new() {
    size=$(wc -c < "$run/output")
    if [ "$size" -gt "$offset" ]; then
        tail -c "+$((offset + 1))" "$run/output" | head -c "$((size - offset))"
        offset=$size
    fi
}

while :; do
    # Whether it is over is asked before the output is looked at: then nothing comes after it.
    state=running
    if [ -e "$run/code" ]; then
        state=over
    elif ! is_alive; then
        # It may have ended between the two questions.
        state=gone
        if [ -e "$run/code" ]; then
            state=over
        fi
    fi
    write_new
    case $state in
        over) exit 0 ;;
        gone) exit 3 ;;
    esac
    if [ -n "$end" ] && [ "$(date +%s)" -ge "$end" ]; then
        exit 4
    fi
    sleep 0.2
done
