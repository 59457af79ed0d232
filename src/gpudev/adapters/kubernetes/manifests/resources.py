"""CPU, memory and GPUs of a dev server, in the words of Kubernetes."""

from __future__ import annotations

from fractions import Fraction

from gpudev.adapters.kubernetes.labels import Json
from gpudev.domain.catalogue import Amount, GpuType, Share

_MIB_PER_GIB = 1024
_LEAST_SHARED_MEMORY_GIB = 8


def make_resources(share: Share, gpu_type: GpuType, gpu_count: int) -> Json:
    gpus = {gpu_type.resource: str(gpu_count)} if gpu_count else {}
    return {
        "requests": {
            "cpu": cpu_quantity(share.cpu_request),
            "memory": memory_quantity(share.memory_request_gib),
            **gpus,
        },
        "limits": {
            "cpu": cpu_quantity(share.cpu_limit),
            "memory": memory_quantity(share.memory_limit_gib),
            **gpus,
        },
    }


def shared_memory(share: Share) -> str:
    """Half the memory share and at least what NCCL wants, but never more than there is to use."""
    limit = Fraction(share.memory_limit_gib)
    return memory_quantity(min(limit, max(limit / 2, Fraction(_LEAST_SHARED_MEMORY_GIB))))


def cpu_quantity(vcpus: Amount) -> str:
    exact = Fraction(vcpus)
    return str(exact) if exact.denominator == 1 else f"{max(1, int(exact * 1000))}m"


def memory_quantity(gibibytes: Amount) -> str:
    exact = Fraction(gibibytes)
    return f"{exact}Gi" if exact.denominator == 1 else f"{max(1, int(exact * _MIB_PER_GIB))}Mi"
