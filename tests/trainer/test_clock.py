import threading
import time

import pytest

from cgratio.trainer.clock import StageClock, thread_cpu_s


def test_a_stage_counts_while_it_lasts():
    clock = StageClock("wait", "work")
    assert clock.read() == {"wait": 0.0, "work": 0.0}
    clock.enter("wait")
    time.sleep(0.05)
    first = clock.read()
    time.sleep(0.05)
    second = clock.read()
    assert first["wait"] == pytest.approx(0.05, abs=0.03)
    assert second["wait"] > first["wait"]
    clock.enter("work")
    done = clock.read()["wait"]
    time.sleep(0.02)
    assert clock.read()["wait"] == done


def test_what_another_thread_reads_only_grows_and_adds_up():
    clock, stop = StageClock("a", "b", "c"), threading.Event()
    start = time.perf_counter()
    clock.enter("a")

    def write():
        while not stop.is_set():
            for stage in "abc":
                clock.enter(stage)

    writer = threading.Thread(target=write)
    writer.start()
    last = 0.0
    for _ in range(2000):
        before = time.perf_counter() - start
        total = sum(clock.read().values())
        after = time.perf_counter() - start
        assert total >= last - 1e-9
        assert before - 1e-3 <= total <= after + 1e-3
        last = total
    stop.set()
    writer.join()


def test_processor_time_of_a_thread_that_is_not_there_counts_nothing():
    assert thread_cpu_s([2**22 - 1]) == 0.0  # the kernel's highest number
    assert thread_cpu_s([threading.get_native_id()]) > 0.0
