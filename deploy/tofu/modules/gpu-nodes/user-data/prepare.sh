# What a node needs before it joins: the driver's options before the driver, the caches of images, the kubelet.
#
# From the environment: HAS_GPU and PROFILING (true or false), REGISTRY_MIRRORS ("host=address host=address").
# ROOT is empty but in tests.
# shellcheck shell=bash
set -euo pipefail
ROOT=${ROOT:-}

# Profilers read counters that are root's by default. The module reads this when it is loaded, so before the driver.
allow_profiling() {
    mkdir -p "$ROOT/etc/modprobe.d"
    echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' >"$ROOT/etc/modprobe.d/nvidia-profiling.conf"
    # Loaded already, from the image: the running module keeps its options until it is loaded again.
    if [ -e "$ROOT/proc/driver/nvidia/params" ] &&
        ! grep -q 'RmProfilingAdminOnly: 0' "$ROOT/proc/driver/nvidia/params"; then
        modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia
        modprobe nvidia
    fi
}

# An image comes from the cache where there is one, and from its own host where the cache does not answer.
trust_cache() {
    local host=$1 address=$2
    mkdir -p "$ROOT/etc/containerd/certs.d/$host"
    cat >"$ROOT/etc/containerd/certs.d/$host/hosts.toml" <<TOML
server = "https://$host"

[host."http://$address"]
  capabilities = ["pull", "resolve"]
TOML
}

trust_caches_of_docker() {
    local entry addresses=()
    for entry in "$@"; do
        addresses+=("\"${entry#*=}\"")
    done
    mkdir -p "$ROOT/etc/docker"
    local IFS=,
    printf '{"insecure-registries": [%s]}\n' "${addresses[*]}" >"$ROOT/etc/docker/daemon.json"
}

if [ "$HAS_GPU" = true ] && [ "$PROFILING" = true ]; then
    allow_profiling
fi
read -r -a mirrors <<<"$REGISTRY_MIRRORS"
for mirror in "${mirrors[@]}"; do
    trust_cache "${mirror%%=*}" "${mirror#*=}"
done
if [ "${#mirrors[@]}" -gt 0 ]; then
    trust_caches_of_docker "${mirrors[@]}"
fi
systemctl enable kubelet
