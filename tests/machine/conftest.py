"""Saved host trees, and a stand-in for NVML."""

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from cgratio.machine.cpulist import parse_cpu_list


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A fresh fake pynvml, in place of the real one."""
    path = Path(__file__).parents[1] / "telemetry/fake_pynvml.py"
    spec = importlib.util.spec_from_file_location("pynvml", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., Path]:
    """Writes a host below a folder of the test, and returns the folder.

    `cores` and `packages` are CPU lists of the threads of each, offline ones included; `nodes` has the
    `cpulist` of each node, `affinity` the `Cpus_allowed_list`, and `files` whatever else there is.
    """

    def write(
        *,
        online: str,
        cores: Sequence[str] = (),
        packages: Sequence[str] = (),
        nodes: Mapping[int, str] | None = None,
        affinity: str | None = None,
        files: Mapping[str, str] | None = None,
    ) -> Path:
        content = {"sys/devices/system/cpu/online": online, **(files or {})}
        for core in cores:
            for cpu in parse_cpu_list(core):
                folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
                content[f"{folder}/thread_siblings_list"] = core
                package = next((i for i, p in enumerate(packages) if cpu in parse_cpu_list(p)), 0)
                content[f"{folder}/physical_package_id"] = str(package)
        for node, cpus in (nodes or {}).items():
            content[f"sys/devices/system/node/node{node}/cpulist"] = cpus
        if affinity is not None:
            content["proc/self/status"] = f"Name:\tpython\nCpus_allowed:\tff\nCpus_allowed_list:\t{affinity}"
        for name, text in content.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        return tmp_path

    return write
