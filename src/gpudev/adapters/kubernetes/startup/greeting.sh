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
if [ -n "${GPU_DEV_DISK:-}" ]; then
    echo "  Home       /home/dev is your disk \"$GPU_DEV_DISK\"; it outlives the reservation"
else
    echo "  Home       /home/dev goes when the reservation ends"
fi
echo "  Scratch    /workspace goes when the reservation ends"
if [ -n "${GPU_DEV_NOTICE:-}" ]; then
    echo "  Note       $GPU_DEV_NOTICE"
fi
echo
