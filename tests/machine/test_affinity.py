import os
import subprocess
import sys
import threading

import pytest

from cgratio.machine.affinity import AffinityError, pin_process, pin_threads, read_masks, thread_ids


@pytest.fixture
def worker():
    """A thread that may be pinned without harm to the test."""
    done, tid = threading.Event(), []
    started = threading.Event()

    def run() -> None:
        tid.append(threading.get_native_id())
        started.set()
        done.wait()

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    yield tid[0]
    done.set()
    thread.join()


def test_a_thread_is_pinned_and_read_back(worker: int) -> None:
    cpu = frozenset({min(os.sched_getaffinity(0))})
    pin_threads([worker], cpu)
    assert read_masks()[worker] == cpu
    assert read_masks()[threading.get_native_id()] == os.sched_getaffinity(0)


@pytest.mark.parametrize("extra", [set(), {0}])
def test_a_cpu_that_the_kernel_does_not_grant_is_named(worker: int, extra: set[int]) -> None:
    # Case B2: {99} fails in the kernel, {0, 99} is cut to {0} without a word.
    absent = max(os.sched_getaffinity(0)) + 97
    asked = frozenset({absent} | ({min(os.sched_getaffinity(0))} if extra else set()))
    with pytest.raises(AffinityError, match=f"CPU {absent} was not granted") as raised:
        pin_threads([worker], asked)
    assert raised.value.cpus == {absent}


def test_an_id_beyond_any_mask_is_named_too(worker: int) -> None:
    with pytest.raises(AffinityError, match="CPU 60000"):
        pin_threads([worker], frozenset({60000}))


def test_no_cpu_is_an_error(worker: int) -> None:
    with pytest.raises(AffinityError, match="at least one"):
        pin_threads([worker], frozenset())


def test_a_thread_that_has_ended_is_left_out() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    pin_threads([process.pid], frozenset(os.sched_getaffinity(0)))
    assert read_masks(process.pid) == {}
    assert thread_ids(process.pid) == frozenset()


def test_every_thread_of_a_process_is_pinned() -> None:
    code = """
import os, threading
from cgratio.machine.affinity import pin_process, read_masks
stop = threading.Event()
threads = [threading.Thread(target=stop.wait) for _ in range(4)]
for thread in threads: thread.start()
cpu = frozenset({max(os.sched_getaffinity(0))})
pin_process(cpu)
assert len(read_masks()) == 5 and set(read_masks().values()) == {cpu}, read_masks()
stop.set()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pinning_a_process_to_an_absent_cpu_names_it() -> None:
    with pytest.raises(AffinityError, match="CPU 4321"):
        pin_process(frozenset(os.sched_getaffinity(0)) | {4321})
