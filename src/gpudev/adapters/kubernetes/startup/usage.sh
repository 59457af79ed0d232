#!/bin/sh
# How much this dev server is used: one line for each thing that can be found out here, and none for the rest.
set -eu

processes=${GPU_DEV_PROC:-/proc}
groups=${GPU_DEV_CGROUP:-/sys/fs/cgroup}

# Established connections to port 22.
tables=
for table in "$processes/net/tcp" "$processes/net/tcp6"; do
    if [ -r "$table" ]; then
        tables="$tables $table"
    fi
done
if [ -n "$tables" ]; then
    # The tables' paths have no spaces of their own.
    # shellcheck disable=SC2086
    echo "ssh $(cat $tables | grep -c ':0016 [0-9A-F]*:[0-9A-F]* 01 ' || true)"
fi

# CPU time of everything in the container, with the moment that it is true of.
read -r uptime _ < "$processes/uptime"
if [ -r "$groups/cpu.stat" ] && grep -q '^usage_usec ' "$groups/cpu.stat"; then
    echo "cpu $uptime $(sed -n 's/^usage_usec //p' "$groups/cpu.stat")000"
else
    for file in "$groups/cpuacct/cpuacct.usage" "$groups/cpu,cpuacct/cpuacct.usage"; do
        if [ -r "$file" ]; then
            echo "cpu $uptime $(cat "$file")"
            break
        fi
    done
fi

# How often the kernel has ended something here for want of memory. The cluster hears only of process 1.
for file in "$groups/memory.events" "$groups/memory/memory.oom_control"; do
    if [ -r "$file" ]; then
        sed -n 's/^oom_kill /oom /p' "$file"
        break
    fi
done

if command -v nvidia-smi > /dev/null; then
    nvidia-smi --query-gpu=utilization.gpu,memory.used,memory.total --format=csv,noheader,nounits |
        sed -e 's/,//g' -e 's/^/gpu /'
fi
