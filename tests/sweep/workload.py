"""A stand-in for the trainer that speaks the same protocol, for tests of what watches it.

How it behaves is told by the learning rate, the one setting that is free to carry a number here.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

from cgratio.workload.protocol import Count, Failure, Final, Ready, write

KILLED, ABORTED, EXIT_134, STUBBORN, HUNG, REFUSED, NEVER_READY = (float(code) for code in range(1, 8))
RATE = 1000


def main() -> None:
    descriptor = int(sys.argv[1])
    trainer = json.loads(sys.stdin.buffer.readline())["trainer"]
    behaviour = trainer["learning_rate"] if trainer["actors"] == 4 else 0.0
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), stop.set()), daemon=True).start()
    if behaviour == NEVER_READY:
        time.sleep(600)
    if behaviour == REFUSED:
        write(descriptor, Failure(code="bad_request", message="this is not wanted"))
        sys.exit(2)
    if trainer["learning_rate"] == STUBBORN:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        code = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; time.sleep(600)"
        for own_session in (False, True):
            subprocess.Popen([sys.executable, "-c", code, "unending"], start_new_session=own_session)
    write(
        descriptor,
        Ready(
            time_s=time.monotonic(),
            frame_skip=4,
            actors=trainer["actors"],
            actor_threads=1,
            actor_cpu_list=None,
            device_cpu_list=None,
            inference_batch=1,
            precision="fp32",
        ),
    )
    start, samples = time.monotonic(), 0
    while not stop.is_set():
        now = time.monotonic() - start
        if not (behaviour == HUNG and now > 0.3):
            samples = int(now * RATE) + 1
        write(descriptor, count(start + now, samples))
        if now > 0.3 and behaviour in {KILLED, ABORTED, EXIT_134}:
            if behaviour == EXIT_134:
                os._exit(134)
            os.kill(os.getpid(), signal.SIGKILL if behaviour == KILLED else signal.SIGABRT)
        time.sleep(0.02)
    write(descriptor, Final(time_s=time.monotonic(), drifted=[]))


def count(time_s: float, samples: int) -> Count:
    return Count(
        time_s=time_s,
        samples=samples,
        batches=samples,
        updates=samples // 20,
        learned=samples,
        lag_sum=samples,
        lag_max=2,
        episodes=0,
        recent_return=None,
        environment_cpu_s=time_s * 0.9,
        device_cpu_s=time_s * 0.5,
        stages={
            "wait_batch": time_s * 0.5,
            "inference": time_s * 0.4,
            "transfer": time_s * 0.1,
            "backpressure": 0.0,
            "learner": time_s * 0.3,
            "wait_data": time_s * 0.7,
        },
    )


if __name__ == "__main__":
    main()
