import json
from dataclasses import replace
from pathlib import Path

from cgratio.machine.fingerprint import GpuFacts, host_fingerprint
from cgratio.machine.gpus import GpuInventory


def test_a_saved_tree_has_the_facts_of_its_host(tree) -> None:
    files = {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu hypervisor sse",
        "proc/meminfo": "MemTotal:       16777216 kB\nMemFree:        1 kB",
        "proc/sys/kernel/hostname": "node7",
        "proc/sys/kernel/osrelease": "6.8.0",
    }
    facts = host_fingerprint(root=tree(online="0-3", cores=["0-1", "2-3"], affinity="0-2", files=files))
    assert (facts.hostname, facts.kernel, facts.cpu_model) == ("node7", "6.8.0", "Some CPU")
    assert (facts.cpus_online, facts.cpus_allowed, facts.cores) == ("0-3", "0-2", 2)
    assert facts.memory_bytes == 16 << 30
    assert facts.virtualised is True
    assert facts.gpus == ()
    assert facts.gpu_reason == "NVML describes the running host, not a saved tree"


def test_the_id_changes_with_what_matters_only() -> None:
    facts = host_fingerprint(inventory=GpuInventory(gpus=(), reason="none"))
    gpu = GpuFacts(uuid="GPU-1", name="NVIDIA H100", sm_count=132)
    assert facts.id == host_fingerprint(inventory=GpuInventory(gpus=())).id
    assert facts.id == replace(facts, hostname="other").id
    assert facts.id == replace(facts, memory_bytes=(facts.memory_bytes or 0) + 4096).id
    assert facts.id != replace(facts, quota_cpus=1.5).id
    assert facts.id != replace(facts, kernel="6.9.0").id
    assert facts.id != replace(facts, gpus=(gpu,)).id
    assert len(facts.id) == 12


def test_the_facts_are_json(tmp_path: Path) -> None:
    facts = host_fingerprint(inventory=GpuInventory(gpus=()))
    assert json.loads(json.dumps(facts.as_dict(), allow_nan=False))["cores"] == facts.cores
