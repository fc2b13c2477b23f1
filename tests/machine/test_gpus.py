from types import ModuleType

import pytest

from cgratio.machine.gpus import Gpu, GpuSelectionError, list_gpus, resolve_visible

A = "GPU-0000aaaa-1111-2222-3333-444444444444"
B = "GPU-0000bbbb-1111-2222-3333-444444444444"
C = "GPU-cccc0000-1111-2222-3333-444444444444"
MIG = "MIG-11111111-2222-3333-4444-555555555555"


def gpu(
    index: int,
    uuid: str,
    *,
    name: str = "NVIDIA A100",
    slices: tuple[Gpu, ...] = (),
    parent: str | None = None,
):
    return Gpu(
        index=index,
        uuid=uuid,
        name=name,
        sm_count=108,
        memory_bytes=None,
        numa_node=None,
        pci_bus_id="00000000:3B:00.0",
        driver_version="570",
        parent_uuid=parent,
        slices=slices,
    )


TWO = (gpu(0, A), gpu(1, C))


@pytest.mark.parametrize(
    ("value", "uuids"),
    [
        (None, [A, C]),
        ("", []),
        (" ", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("1,0", [C, A]),
        (" 1 ", [C]),
        ("0,-1,1", [A]),
        ("GPU-0000", [A]),
        (C, [C]),
        (f"{C},0", [C, A]),
    ],
)
def test_the_list_means_what_it_means_to_cuda(value: str | None, uuids: list[str]) -> None:
    # Case C1.
    assert [gpu.uuid for gpu in resolve_visible(TWO, value)] == uuids


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("7", "'7'; this host has 0"),
        ("0,7", "'7'"),
        ("GPU-ffff", "'GPU-ffff'"),
        ("MIG-ffff", "'MIG-ffff'"),
        ("1,1", "twice"),
        ("0,GPU-0000", "twice"),
        ("one", "'one'"),
        ("0,", "''"),
        ("0;1", "'0;1'"),
    ],
)
def test_what_is_not_there_is_an_error_and_never_gpu_0(value: str, message: str) -> None:
    # Case C1.
    with pytest.raises(GpuSelectionError, match=message):
        resolve_visible(TWO, value)


def test_a_short_uuid_of_two_gpus_is_ambiguous() -> None:
    # Case C1.
    with pytest.raises(GpuSelectionError, match="should match one of"):
        resolve_visible((gpu(0, A), gpu(1, B)), "GPU-0000")


def test_no_gpus_and_an_index_is_an_error() -> None:
    with pytest.raises(GpuSelectionError, match="this host has no GPU"):
        resolve_visible((), "0")


def test_a_slice_is_chosen_by_its_whole_uuid() -> None:
    # Case C1.
    split = gpu(0, A, slices=(gpu(0, MIG, parent=A),))
    assert [g.uuid for g in resolve_visible((split, gpu(1, C)), MIG)] == [MIG]
    for value in ("0", A, None):
        with pytest.raises(GpuSelectionError, match=f"split into MIG slices; name one of {MIG}"):
            resolve_visible((split,), value)


def test_indices_of_unlike_gpus_need_the_pci_order() -> None:
    gpus = (gpu(0, A), gpu(1, C, name="NVIDIA T4"))
    assert resolve_visible(gpus, "1")[0].uuid == C
    with pytest.raises(GpuSelectionError, match="CUDA_DEVICE_ORDER=PCI_BUS_ID"):
        resolve_visible(gpus, "1", device_order="FASTEST_FIRST")


@pytest.mark.parametrize(
    ("cores", "capability", "sms"),
    [
        (16896, (9, 0), 132),  # H100 and H200 SXM
        (6912, (8, 0), 108),  # A100
        (2560, (7, 5), 40),  # T4
        (5120, (7, 0), 80),  # V100
        (10752, (8, 6), 84),  # A6000
    ],
)
def test_sms_follow_from_cores(nvml: ModuleType, cores: int, capability: tuple[int, int], sms: int) -> None:
    nvml.devices.append(nvml.Device(cores=cores, capability=capability))
    (found,) = list_gpus().gpus
    assert (found.sm_count, found.sm_reason) == (sms, None)


def test_unknown_sms_come_with_a_reason(nvml: ModuleType) -> None:
    silent = {"nvmlDeviceGetNumGpuCores": nvml.NVMLError_NotSupported}
    nvml.devices += [
        nvml.Device(capability=(99, 0)),
        nvml.Device(faults=silent),
        nvml.Device(cores=100),
    ]
    gpus = list_gpus().gpus
    assert [g.sm_count for g in gpus] == [None, None, None]
    assert all(g.sm_reason for g in gpus)


def test_gpus_are_listed_with_node_and_memory(nvml: ModuleType, tree) -> None:
    nvml.devices.append(nvml.Device())
    root = tree(online="0", files={"sys/bus/pci/devices/0000:3b:00.0/numa_node": "1"})
    inventory = list_gpus(root=root)
    (found,) = inventory.gpus
    assert inventory.reason is None
    assert (found.numa_node, found.memory_bytes, found.compute_capability) == (1, 80 << 30, "9.0")
    assert nvml.starts == 0


def test_slices_are_listed_below_their_card(nvml: ModuleType) -> None:
    nvml.devices.append(nvml.Device(slices=[nvml.Device(uuid=MIG, slice_sms=16)]))
    (card,) = list_gpus().gpus
    (part,) = card.slices
    assert (part.uuid, part.sm_count, part.parent_uuid) == (MIG, 16, card.uuid)


def test_a_lost_gpu_does_not_hide_the_others(nvml: ModuleType) -> None:
    nvml.devices += [nvml.Device(faults={"nvmlDeviceGetUUID": nvml.NVMLError_GpuIsLost}), nvml.Device(uuid=C)]
    inventory = list_gpus()
    assert [g.uuid for g in inventory.gpus] == [C]
    assert inventory.reason == "GPU 0 does not answer: GPU is lost"


def test_no_driver_is_a_reason_and_not_an_error(nvml: ModuleType) -> None:
    nvml.init_error = nvml.NVMLError_LibraryNotFound
    inventory = list_gpus()
    assert inventory.gpus == ()
    assert inventory.reason is not None
    assert "libnvidia-ml.so.1 not found" in inventory.reason
