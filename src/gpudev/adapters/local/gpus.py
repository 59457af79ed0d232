"""The GPUs of this machine: as given to a dev server, real or simulated, and as the driver's NVML lists them.

`pynvml` is imported at the moment of need: only the extra `local` brings it, and every server imports this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_VENDOR_WORDS = frozenset({"nvidia", "tesla"})


@dataclass(frozen=True, slots=True)
class DetectedGpu:
    product: str
    """As the driver says it, for example "NVIDIA H200" or "Tesla T4"."""
    uuid: str
    minor_number: int
    memory_bytes: int

    @property
    def device_path(self) -> str:
        return f"/dev/nvidia{self.minor_number}"


def list_gpus() -> tuple[DetectedGpu, ...]:
    """The machine's GPUs in the driver's order; none where there is no driver."""
    import pynvml  # noqa: PLC0415 - see above

    try:
        with _nvml():
            return tuple(_describe(index) for index in range(pynvml.nvmlDeviceGetCount()))
    except (
        pynvml.NVMLError_LibraryNotFound,
        pynvml.NVMLError_DriverNotLoaded,
        pynvml.NVMLError_NoPermission,
    ):
        return ()


@dataclass(frozen=True, slots=True)
class GpuUse:
    percent: float
    """Of the last moments in which something ran on it."""
    memory_percent: float


def find_use(uuid: str) -> GpuUse | None:
    """What the driver says of one GPU now; None if it does not say."""
    import pynvml  # noqa: PLC0415 - see above

    try:
        with _nvml():
            device = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            percent = pynvml.nvmlDeviceGetUtilizationRates(device).gpu
            memory = pynvml.nvmlDeviceGetMemoryInfo(device)
            return GpuUse(float(percent), 100 * memory.used / memory.total) if memory.total else None
    except pynvml.NVMLError:
        return None


def model_words(product: str) -> tuple[str, ...]:
    """A product's name in lower-case words, without the vendor's: ("h100", "80gb", "hbm3")."""
    words = re.findall(r"[a-z0-9]+", product.lower())
    return tuple(word for word in words if word not in _VENDOR_WORDS)


@contextmanager
def _nvml() -> Iterator[None]:
    import pynvml  # noqa: PLC0415 - see above

    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _describe(index: int) -> DetectedGpu:
    import pynvml  # noqa: PLC0415 - see above

    device = pynvml.nvmlDeviceGetHandleByIndex(index)
    return DetectedGpu(
        product=pynvml.nvmlDeviceGetName(device),
        uuid=pynvml.nvmlDeviceGetUUID(device),
        minor_number=pynvml.nvmlDeviceGetMinorNumber(device),
        memory_bytes=pynvml.nvmlDeviceGetMemoryInfo(device).total,
    )


@dataclass(frozen=True, slots=True)
class LocalGpu:
    visible_name: str
    """What `CUDA_VISIBLE_DEVICES` says: a UUID, or a name that can never be a real GPU's."""
    device_paths: tuple[str, ...] = ()
    is_simulated: bool = True
