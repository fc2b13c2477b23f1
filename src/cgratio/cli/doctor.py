"""`cgratio doctor`: what this host has and what can be measured on it."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cgratio.cli.output import Listing, refuse, say_json, show
from cgratio.machine.cpulist import CpuListError, format_cpu_list
from cgratio.machine.host import Host, read_host
from cgratio.machine.topology import TopologyError
from cgratio.telemetry.inventory import SensorStatus, list_sensors


def doctor(
    sysroot: Annotated[
        Path,
        typer.Option("--sysroot", help="Folder that holds proc and sys, for a saved tree of another host."),
    ] = Path("/"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the CPUs, the GPUs and the sensors of this host, and why a sensor is missing."""
    try:
        host = read_host(
            root=sysroot,
            cuda_visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
            device_order=os.environ.get("CUDA_DEVICE_ORDER", "FASTEST_FIRST"),
        )
    except (TopologyError, CpuListError, OSError) as error:
        refuse(f"--sysroot {sysroot}: {error.strerror if isinstance(error, OSError) else error}")
    sensors = list_sensors(root=sysroot)
    if as_json:
        say_json({**host.as_dict(), "sensors": [{**asdict(status), "ok": status.ok} for status in sensors]})
        return
    show(_host(host))
    show(_sensors(sensors))


def _host(host: Host) -> Listing:
    limits, facts, ratio = host.limits, host.facts, host.ratio
    quota = (
        "none" if limits.quota_cpus is None else f"{limits.quota_cpus:g} CPUs of time ({limits.quota_source})"
    )
    rows = [
        ("CPU", facts.cpu_model or "unknown"),
        ("packages / nodes / cores", f"{facts.packages} / {facts.nodes} / {facts.cores}"),
        ("threads online", f"{len(limits.online)} ({facts.cpus_online})"),
        ("threads allowed", f"{len(limits.allowed)} ({facts.cpus_allowed})"),
        ("affinity / cpuset", f"{format_cpu_list(limits.affinity)} / {format_cpu_list(limits.cpuset)}"),
        ("quota", quota),
        ("virtual machine", {True: "yes", False: "no", None: "unknown"}[facts.virtualised]),
    ]
    for gpu in host.inventory.gpus:
        sms = f"{gpu.sm_count} SMs" if gpu.sm_count is not None else f"SMs unknown: {gpu.sm_reason}"
        seen = "" if gpu in host.visible else ", not visible"
        rows.append((f"GPU {gpu.index}", f"{gpu.name}, {sms}, {gpu.uuid}{seen}"))
        rows += [("  slice", f"{part.name}, {part.sm_count} SMs, {part.uuid}") for part in gpu.slices]
    if host.visible_reason:
        rows.append(("GPU", f"none: {host.visible_reason}"))
    if ratio.ratio is None:
        rows.append(("CPU/GPU ratio", f"unknown: {ratio.reason}"))
    else:
        rows.append(("CPU/GPU ratio", f"{ratio.ratio:.3g} ({ratio.rule})"))
    if ratio.threads_per_gpu is not None:
        rows.append(("per visible GPU", f"{ratio.threads_per_gpu:g} threads, {ratio.cores_per_gpu:g} cores"))
    rows += [("note", note) for note in (*host.topology.notes, *limits.notes)]
    return Listing(title="Host", headers=["Fact", "Value"], rows=rows, spaced=True)


def _sensors(sensors: Sequence[SensorStatus]) -> Listing:
    # Sensors in the same state share a row: without a driver, all of a GPU's have the same reason.
    rows: dict[str, list[str]] = {}
    for status in sensors:
        name = status.sensor if status.device is None else f"{status.sensor} of {status.device}"
        rows.setdefault(_state(status), []).append(name)
    cells = [["\n".join(names), state] for state, names in rows.items()]
    return Listing(title="Sensors", headers=["Sensor", "State"], rows=cells, spaced=True)


def _state(status: SensorStatus) -> str:
    if not status.ok:
        return f"missing: {status.reason}" + (f"\ntry: {status.fix}" if status.fix else "")
    # Of many CPUs, the first few say enough.
    shown = [*status.devices[:3], "..."] if len(status.devices) > 3 else status.devices
    return f"ok: {', '.join(shown)}" if shown else "ok"
