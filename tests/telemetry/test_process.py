import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from cgratio.telemetry.process import ProcessTreeSensor

Tree = Callable[[Mapping[str, str]], Path]


def stat_line(
    pid: int, parent: int, *, name: str = "python", ticks: tuple[int, int, int, int], pages: int
) -> str:
    user, system, child_user, child_system = ticks
    before = f"{pid} ({name}) S {parent} 1 1 0 -1 4194560 100 0 0 0"
    return f"{before} {user} {system} {child_user} {child_system} 20 0 1 0 100 5000000 {pages} 18446744073709"


def test_a_tree_is_its_root_and_all_below_it(tree: Tree) -> None:
    root = tree(
        {
            "proc/10/stat": stat_line(10, 1, ticks=(100, 50, 30, 20), pages=10),
            "proc/11/stat": stat_line(11, 10, name="a (b) c", ticks=(7, 0, 0, 0), pages=1),
            "proc/12/stat": stat_line(12, 11, ticks=(3, 0, 0, 0), pages=1),
            "proc/20/stat": stat_line(20, 1, ticks=(1000, 0, 0, 0), pages=100),
            "proc/version": "Linux",
        }
    )
    sensor = ProcessTreeSensor(pid=10, root=root)
    sensor.open()
    cpu, memory = sensor.read()
    assert cpu.value == pytest.approx(210 / os.sysconf("SC_CLK_TCK"))
    assert memory.value == 12 * os.sysconf("SC_PAGE_SIZE")
    assert cpu.device == "10"


def test_a_process_that_is_gone_is_missing(tree: Tree) -> None:
    sensor = ProcessTreeSensor(
        pid=10, root=tree({"proc/11/stat": stat_line(11, 1, ticks=(1, 0, 0, 0), pages=1)})
    )
    sensor.open()
    assert sensor.read() == []
    assert sensor.missing["process_cpu"] == "process 10 is not running"


def test_the_work_of_a_child_counts_while_it_runs_and_after() -> None:
    sensor = ProcessTreeSensor(pid=os.getpid())
    before = sensor.read()[0].value
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"], check=True)
    assert sensor.read()[0].value - before >= 0.19
