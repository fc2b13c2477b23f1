"""The NVIDIA GPUs of this host and which of them a job may see.

GPUs are known by UUID everywhere: an index means another card once `CUDA_VISIBLE_DEVICES` is set. `nvidia-smi
-L` shows the same list. NVML is loaded when it is asked for, so that a host without a driver can import this
module.
"""

import importlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from cgratio.machine.files import read_int

# FP32 lanes ("CUDA cores") per SM by compute capability. Source: CUDA C++ Programming Guide, chapter "Compute
# Capabilities", sections "Architecture" of 5.x to 12.x; developer.nvidia.com/cuda-gpus lists the cards.
_CORES_PER_SM = {
    **dict.fromkeys([(5, 0), (5, 2), (5, 3)], 128),
    (6, 0): 64,
    **dict.fromkeys([(6, 1), (6, 2)], 128),
    **dict.fromkeys([(7, 0), (7, 2), (7, 5), (8, 0)], 64),
    **dict.fromkeys([(8, 6), (8, 7), (8, 9), (9, 0)], 128),
    **dict.fromkeys([(10, 0), (10, 3), (11, 0), (12, 0), (12, 1)], 128),
}


class GpuSelectionError(ValueError):
    """A choice of GPUs names none, several, or one that does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU, or a MIG slice of one.

    Attributes:
        index: NVML index of the card (PCI order); of its parent for a slice.
        uuid: `GPU-...` or `MIG-...`.
        name: Product name.
        sm_count: Streaming multiprocessors, or None with `sm_reason`.
        memory_bytes: Total memory, or None where NVML does not say.
        numa_node: NUMA node of its PCI slot, or None where the host does not say.
        pci_bus_id: As NVML writes it, `00000000:3B:00.0`.
        driver_version: NVIDIA driver.
        compute_capability: For example `9.0`, or None.
        sm_reason: Why `sm_count` is None.
        parent_uuid: UUID of the card that a slice is part of; None for a whole card.
        slices: MIG slices, if the card is split.
    """

    index: int
    uuid: str
    name: str
    sm_count: int | None
    memory_bytes: int | None
    numa_node: int | None
    pci_bus_id: str
    driver_version: str
    compute_capability: str | None = None
    sm_reason: str | None = None
    parent_uuid: str | None = None
    slices: tuple["Gpu", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuInventory:
    """The GPUs found, and the reason if there is none or one could not be read."""

    gpus: tuple[Gpu, ...]
    reason: str | None = None


def list_gpus(*, root: Path = Path("/")) -> GpuInventory:
    """Lists the GPUs of this host through NVML, whatever `CUDA_VISIBLE_DEVICES` says.

    Args:
        root: Folder that holds `sys`, for the NUMA node of each card.
    """
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError as error:
        return GpuInventory(gpus=(), reason=f"the Python module pynvml is not installed ({error})")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return GpuInventory(gpus=(), reason=_init_reason(error))
    try:
        return _list(nvml, root=root)
    finally:
        with suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def resolve_visible(
    gpus: Sequence[Gpu], cuda_visible_devices: str | None, *, device_order: str = "PCI_BUS_ID"
) -> tuple[Gpu, ...]:
    """The GPUs that a job sees under a value of `CUDA_VISIBLE_DEVICES`, in its order.

    CUDA itself ends the list silently at the first name it does not know; here that is an error, because a
    measurement on other GPUs than those asked for is worse than none.

    Args:
        gpus: GPUs of the host (`GpuInventory.gpus`).
        cuda_visible_devices: The variable's value; None if it is not set (all GPUs), empty or `-1` for no
            GPU. Names are indices, `GPU-` UUIDs or unique beginnings of them, or `MIG-` UUIDs.
        device_order: The value of `CUDA_DEVICE_ORDER` that the job runs under. CUDA's own default,
            `FASTEST_FIRST`, numbers unlike cards differently from NVML, so indices are refused there.

    Raises:
        GpuSelectionError: If a name matches no GPU, several, one twice, or a card that is split into MIG
            slices.

    Source: CUDA C++ Programming Guide, "CUDA Environment Variables"; MIG User Guide, "CUDA Visible Devices".
    """
    if cuda_visible_devices is None:
        for gpu in gpus:
            _refuse_split(gpu, name=str(gpu.index))
        return tuple(gpus)
    chosen: list[Gpu] = []
    for name in (part.strip() for part in cuda_visible_devices.split(",")):
        # `NoDevFiles` is what Slurm sets for a job without GPUs.
        if name in {"-1", "NoDevFiles"} or not cuda_visible_devices.strip():
            break
        gpu = (
            _by_uuid(gpus, name) if name.startswith(("GPU-", "MIG-")) else _by_index(gpus, name, device_order)
        )
        if gpu in chosen:
            raise GpuSelectionError(
                f"CUDA_VISIBLE_DEVICES names GPU {gpu.uuid} twice; each should be named once"
            )
        chosen.append(gpu)
    return tuple(chosen)


def _by_uuid(gpus: Sequence[Gpu], name: str) -> Gpu:
    whole_and_slices = [*gpus, *(part for gpu in gpus for part in gpu.slices)]
    found = [gpu for gpu in whole_and_slices if gpu.uuid == name]
    # CUDA takes a unique beginning of a card's UUID, but only the whole UUID of a slice.
    if not found and name.startswith("GPU-"):
        found = [gpu for gpu in gpus if gpu.uuid.startswith(name)]
    if not found:
        raise GpuSelectionError(
            f"CUDA_VISIBLE_DEVICES names GPU {name!r}; this host has {_names(whole_and_slices)}"
        )
    if len(found) > 1:
        raise GpuSelectionError(
            f"CUDA_VISIBLE_DEVICES names GPU {name!r}, which should match one of {_names(found)}"
        )
    return _refuse_split(found[0], name=name)


def _by_index(gpus: Sequence[Gpu], name: str, device_order: str) -> Gpu:
    # isascii: isdecimal alone also takes digits of other scripts, which CUDA does not.
    found = [gpu for gpu in gpus if name.isascii() and name.isdecimal() and gpu.index == int(name)]
    if not found:
        raise GpuSelectionError(f"CUDA_VISIBLE_DEVICES names GPU {name!r}; this host has {_names(gpus)}")
    if device_order != "PCI_BUS_ID" and len({gpu.name for gpu in gpus}) > 1:
        raise GpuSelectionError(
            f"CUDA_VISIBLE_DEVICES names GPU {name} on a host with unlike GPUs; "
            "name it by its UUID or set CUDA_DEVICE_ORDER=PCI_BUS_ID"
        )
    return _refuse_split(found[0], name=name)


def _refuse_split(gpu: Gpu, *, name: str) -> Gpu:
    if gpu.slices:
        raise GpuSelectionError(f"GPU {name} is split into MIG slices; name one of {_names(gpu.slices)}")
    return gpu


def _names(gpus: Sequence[Gpu]) -> str:
    return ", ".join(gpu.uuid if gpu.parent_uuid else f"{gpu.index} ({gpu.uuid})" for gpu in gpus) or "no GPU"


def _init_reason(error: Exception) -> str:
    return {
        "NVMLError_LibraryNotFound": "libnvidia-ml.so.1 not found: no NVIDIA driver on this host",
        "NVMLError_DriverNotLoaded": "the NVIDIA driver is installed but not loaded",
        "NVMLError_LibRmVersionMismatch": "libnvidia-ml.so.1 and the loaded driver differ in version: reboot",
        "NVMLError_NoPermission": "no permission to open /dev/nvidiactl",
    }.get(type(error).__name__, f"NVML does not start: {error}")


def _list(nvml: ModuleType, *, root: Path) -> GpuInventory:
    try:
        driver, count = str(nvml.nvmlSystemGetDriverVersion()), int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError as error:
        return GpuInventory(gpus=(), reason=f"NVML does not list the GPUs: {error}")
    gpus, failures = [], []
    for index in range(count):
        try:
            gpus.append(
                _read_gpu(nvml, nvml.nvmlDeviceGetHandleByIndex(index), index=index, driver=driver, root=root)
            )
        except nvml.NVMLError as error:
            failures.append(f"GPU {index} does not answer: {error}")
    if not count:
        failures.append("the NVIDIA driver finds no GPU")
    return GpuInventory(gpus=tuple(gpus), reason="; ".join(failures) or None)


def _read_gpu(nvml: ModuleType, handle: Any, *, index: int, driver: str, root: Path) -> Gpu:
    bus = nvml.nvmlDeviceGetPciInfo(handle).busId
    bus = bus.decode() if isinstance(bus, bytes) else str(bus)
    # NVML writes the PCI domain with 8 digits, sysfs with 4 and in lower case.
    numa_node = read_int(root / "sys/bus/pci/devices" / bus[-12:].lower() / "numa_node")
    capability = _ask(nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    sm_count, sm_reason = _count_sms(nvml, handle, capability=capability)
    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    gpu = Gpu(
        index=index,
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
        name=str(nvml.nvmlDeviceGetName(handle)),
        sm_count=sm_count,
        memory_bytes=None if memory is None else int(memory.total),
        numa_node=numa_node if numa_node is not None and numa_node >= 0 else None,
        pci_bus_id=bus,
        driver_version=driver,
        compute_capability=None if capability is None else f"{capability[0]}.{capability[1]}",
        sm_reason=sm_reason,
    )
    slices = tuple(_read_slice(nvml, part, parent=gpu) for part in _mig_handles(nvml, handle))
    return replace(gpu, slices=slices)


def _count_sms(
    nvml: ModuleType, handle: Any, *, capability: tuple[int, int] | None
) -> tuple[int | None, str | None]:
    """SMs of a whole card: NVML counts CUDA cores, the compute capability says how many make an SM."""
    cores = _ask(nvml, nvml.nvmlDeviceGetNumGpuCores, handle)
    if cores is None or capability is None:
        return None, "NVML does not tell the number of CUDA cores or the compute capability"
    per_sm = _CORES_PER_SM.get((capability[0], capability[1]))
    if per_sm is None:
        return None, f"CUDA cores per SM are not known for compute capability {capability[0]}.{capability[1]}"
    if cores % per_sm:
        return None, f"{cores} CUDA cores are not a multiple of {per_sm} per SM"
    return cores // per_sm, None


def _mig_handles(nvml: ModuleType, handle: Any) -> list[Any]:
    mode = _ask(nvml, nvml.nvmlDeviceGetMigMode, handle)
    if mode is None or mode[0] != nvml.NVML_DEVICE_MIG_ENABLE:
        return []
    most = _ask(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    # Positions without a slice answer "not found".
    found = (_ask(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, i) for i in range(most))
    return [part for part in found if part is not None]


def _read_slice(nvml: ModuleType, handle: Any, *, parent: Gpu) -> Gpu:
    attributes = _ask(nvml, nvml.nvmlDeviceGetAttributes, handle)
    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    return Gpu(
        index=parent.index,
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
        name=str(nvml.nvmlDeviceGetName(handle)),
        sm_count=None if attributes is None else int(attributes.multiprocessorCount),
        memory_bytes=None if memory is None else int(memory.total),
        numa_node=parent.numa_node,
        pci_bus_id=parent.pci_bus_id,
        driver_version=parent.driver_version,
        compute_capability=parent.compute_capability,
        sm_reason="NVML does not tell the attributes of this slice" if attributes is None else None,
        parent_uuid=parent.uuid,
    )


def _ask(nvml: ModuleType, call: Any, *args: Any) -> Any:
    """The answer of an optional NVML call, None where this card or driver does not give it."""
    try:
        return call(*args)
    except nvml.NVMLError:
        return None
