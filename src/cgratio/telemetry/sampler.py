"""The sampler: a process of its own that reads every sensor at a fixed pace and prints what it reads.

    python -m cgratio.telemetry.sampler --period 0.1 --pid 4711 --gpu GPU-...

Standard output holds JSON, one value per line. First `{"sensors": {name: [devices]}, "missing": {name:
why}}`, then for each tick `{"t": seconds, "r": [[sensor, device, value, unit], ...]}` with the time of
`time.monotonic()`, last `{"sampler_cpu_s": seconds, "missing": {...}}`. Slow sensors are not in every tick,
but all are in the first and the last one. It stops at SIGTERM, or when its standard input ends if that is a
pipe. It is killed with the thread that started it, so start it from one that lives as long as it should.
"""

import argparse
import json
import math
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cgratio.machine.processes import die_with_parent
from cgratio.telemetry.inventory import build_sensors
from cgratio.telemetry.sensors import Reading, Sensor

_SHORTEST_PERIOD_S = 0.005


def main(arguments: Sequence[str] | None = None) -> int:
    """Samples until it is told to stop. Returns the exit status."""
    parent = os.getppid()
    options = _parser().parse_args(arguments)
    die_with_parent(signal.SIGKILL, parent=parent if options.parent is None else options.parent)
    wait = _stoppable_wait()
    sensors = build_sensors(root=options.root, gpus=options.gpu, pid=options.pid)
    try:
        _sample(sensors, period_s=options.period, wait=wait)
    except BrokenPipeError:
        # The reader is gone, and with it the reason to sample. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


@dataclass(slots=True)
class _Timed:
    """A sensor and the tick from which on it is read again."""

    sensor: Sensor
    every: int
    due: int = 0


def _sample(sensors: Sequence[Sensor], *, period_s: float, wait: Callable[[float], bool]) -> None:
    """Reads and prints until `wait` says to stop."""
    for sensor in sensors:
        sensor.open()
    timed = [_Timed(sensor=s, every=max(round(s.period_s / period_s), 1)) for s in sensors]
    start = now = time.monotonic()
    readings = _read(timed, tick=0)
    _print({"sensors": _devices(sensors, readings), "missing": _missing(sensors)})
    _print_tick(now, readings)
    tick, stopped = 0, False
    while not stopped:
        # On a grid of absolute times, so that delays do not add up; ticks that were missed are left out.
        tick = max(tick + 1, math.floor((time.monotonic() - start) / period_s))
        stopped = wait(start + tick * period_s - time.monotonic())
        now = time.monotonic()
        _print_tick(now, _read(timed, tick=None if stopped else tick))
    for sensor in sensors:
        sensor.close()
    _print({"sampler_cpu_s": round(time.process_time(), 6), "missing": _missing(sensors)})


def _read(timed: Sequence[_Timed], *, tick: int | None) -> list[Reading]:
    """Reads the sensors that are due at a tick, all of them for None."""
    readings: list[Reading] = []
    for entry in timed:
        if tick is not None:
            if tick < entry.due:
                continue
            entry.due = tick - tick % entry.every + entry.every
        try:
            readings += entry.sensor.read()
        except (OSError, ValueError) as error:
            # One sensor that breaks must not end the others.
            reason = f"failed while measuring: {error}"
            entry.sensor.missing.update(dict.fromkeys(entry.sensor.names, reason))
    return readings


def _devices(sensors: Sequence[Sensor], readings: Sequence[Reading]) -> dict[str, list[str]]:
    """The devices of each sensor; empty for one that gives its first reading later."""
    devices: dict[str, list[str]] = {
        name: [] for sensor in sensors for name in sensor.names if name not in sensor.missing
    }
    for reading in readings:
        devices.setdefault(reading.sensor, []).append(reading.device)
    return devices


def _missing(sensors: Sequence[Sensor]) -> dict[str, str]:
    return {name: reason for sensor in sensors for name, reason in sensor.missing.items()}


def _print_tick(now: float, readings: Sequence[Reading]) -> None:
    # JSON has no NaN; a value that is none is no reading.
    _print({"t": round(now, 6), "r": [r for r in readings if math.isfinite(r.value)]})


def _print(value: object) -> None:
    sys.stdout.write(json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n")
    sys.stdout.flush()


def _stoppable_wait() -> Callable[[float], bool]:
    """A function that waits for some seconds, at most until it is time to stop, and says whether it is."""
    wakeup, signalled = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    # Ctrl-C reaches the whole terminal's group; the parent decides when to stop, and asks by SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watched = [wakeup]
    # A terminal or /dev/null as input says nothing about when to stop.
    if stat.S_ISFIFO(mode := os.fstat(sys.stdin.fileno()).st_mode) or stat.S_ISSOCK(mode):
        watched.append(sys.stdin.fileno())

    def wait(seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select(watched, [], [], max(deadline - time.monotonic(), 0.0))
            if not ready:
                return False
            if wakeup in ready or not os.read(ready[0], 4096):
                return True

    return wait


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cgratio.telemetry.sampler", description="Reads every sensor at a fixed pace."
    )
    parser.add_argument("--period", type=_period, default=0.1, help="seconds between ticks")
    parser.add_argument("--pid", type=int, help="root of the process tree whose CPU time is read")
    parser.add_argument(
        "--gpu", nargs="*", action="extend", help="UUIDs of the GPUs to read; all without this option"
    )
    parser.add_argument("--root", type=Path, default=Path("/"), help="folder that holds proc and sys")
    parser.add_argument(
        "--parent", type=int, help="process id that started this one, to notice that it died at once"
    )
    return parser


def _period(text: str) -> float:
    value = float(text)
    if not _SHORTEST_PERIOD_S <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} should be at least {_SHORTEST_PERIOD_S} s")
    return value


if __name__ == "__main__":
    sys.exit(main())
