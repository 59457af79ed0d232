#!/bin/sh
# What a person reads after logging in.
set -eu

echo "gpu-dev: $GPU_DEV_RESERVATION_NAME of $GPU_DEV_USER"
echo "  GPUs       $GPU_DEV_GPU_COUNT $GPU_DEV_GPU_TYPE on $GPU_DEV_NODE"
if [ -n "${CUDA_VERSION:-}" ]; then
    echo "  CUDA       $CUDA_VERSION"
fi
if command -v nvidia-smi > /dev/null && [ "$GPU_DEV_GPU_COUNT" != 0 ]; then
    echo "  Driver     $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
fi
echo "  Home       /home/dev goes when the reservation ends"
echo "  Scratch    /workspace goes when the reservation ends"
echo
