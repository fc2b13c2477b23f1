from types import ModuleType

import pytest

from cgratio.machine.host import read_host


def test_the_ratio_counts_allowed_threads_and_visible_sms(nvml: ModuleType) -> None:
    nvml.devices += [nvml.Device(uuid="GPU-a"), nvml.Device(uuid="GPU-b")]
    host = read_host(cuda_visible_devices="1")
    threads = len(host.limits.allowed)
    assert [gpu.uuid for gpu in host.visible] == ["GPU-b"]
    assert host.ratio.ratio == pytest.approx(threads / 132)
    assert host.ratio.rule.endswith(f"= {threads} / 132")
    assert host.ratio.threads_per_gpu == threads
    assert read_host().ratio.ratio == pytest.approx(threads / 264)


@pytest.mark.parametrize(("value", "reason"), [("", "hides every GPU"), ("7", "names GPU '7'")])
def test_no_visible_gpu_is_no_ratio(nvml: ModuleType, value: str, reason: str) -> None:
    nvml.devices.append(nvml.Device())
    ratio = read_host(cuda_visible_devices=value).ratio
    assert ratio.ratio is None
    assert ratio.reason is not None
    assert reason in ratio.reason


def test_unknown_sms_are_no_ratio_but_threads_per_gpu(nvml: ModuleType) -> None:
    nvml.devices.append(nvml.Device(capability=(99, 0)))
    ratio = read_host().ratio
    assert (ratio.ratio, ratio.reason) == (
        None,
        "CUDA cores per SM are not known for compute capability 99.0",
    )
    assert ratio.threads_per_gpu is not None


def test_a_saved_tree_has_no_gpus_of_this_host(nvml: ModuleType, tree) -> None:
    nvml.devices.append(nvml.Device())
    host = read_host(root=tree(online="0-1", cores=["0-1"]))
    assert host.inventory.gpus == ()
    assert host.ratio.reason == "NVML describes the running host, not a saved tree"
