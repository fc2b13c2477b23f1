"""Sweeps of two made-up hosts whose answer is known, as analysis and results, without running anything."""

from __future__ import annotations

from typing import Any

from made_sweeps import Sweep, build, curve, point


def host_without_gpu(*, failed: bool = False) -> Sweep:
    """Two CPUs; a device CPU stands in for the accelerator."""

    def rate(threads: Any, amount: Any, actors: Any) -> Any:
        supply, demand = 1400 * threads, 1900 * amount**0.9
        return (supply**-6.0 + demand**-6.0 + (900.0 * actors) ** -6.0) ** (-1 / 6)

    asked: list[dict[str, Any]] = [
        {
            "part": "whole",
            "actors": n,
            "actor_cpus": 1,
            "device_cpus": 1,
            "sm_share": 1.0,
            "inference_batch": n,
        }
        for n in (1, 2, 4, 8, 16)
    ]
    asked += [
        {
            "part": "whole",
            "actors": 16,
            "actor_cpus": 1,
            "device_cpus": 1,
            "sm_share": share,
            "inference_batch": 16,
        }
        for share in (0.5, 0.25)
    ]
    asked += [{"part": "supply", "actors": 16, "actor_cpus": c, "inference_batch": 16} for c in (1, 2)]
    asked += [
        {"part": "demand", "actors": 16, "device_cpus": d, "sm_share": 1.0, "inference_batch": 16}
        for d in (1, 2)
    ]
    points = []
    for number, axes in enumerate(asked):
        amount = (axes.get("device_cpus") or 50) * axes.get("sm_share", 1.0)
        found = float(
            rate(axes.get("actor_cpus", 50), amount, axes["actors"] if axes["part"] == "whole" else 50)
        )
        points.append(point(rate=None if failed else found, number=number, **axes))
    curves = (
        curve("supply", x_name="actor threads", x_unit="threads", low=1, high=2, function=lambda x: 1400 * x),
        curve(
            "demand",
            x_name="accelerator",
            x_unit="device CPUs",
            low=0.25,
            high=2,
            function=lambda x: 1900 * x**0.9,
        ),
        curve(
            "rate_by_actors",
            x_name="actors",
            x_unit="actors",
            low=1,
            high=16,
            function=lambda x: rate(1, 1, x),
            actor_cpus=1.0,
            accelerators=1.0,
        ),
        curve(
            "rate_by_share",
            x_name="share of the accelerator",
            x_unit="1",
            low=0.25,
            high=1,
            function=lambda x: rate(1, x, 16),
            actor_cpus=1.0,
            actors=16.0,
        ),
        curve(
            "rate_by_ratio",
            x_name="threads per device CPU",
            x_unit="1",
            low=0.5,
            high=4,
            function=lambda x: rate(x, 1, 16),
        ),
    )
    return build(points, gpu=False, boundary=None, failed=failed, curves=() if failed else curves)


def host_with_gpu(
    *, boundary: str | None = "gpu_board", sizes: tuple[int, ...] = (4, 8, 16, 32, 64, 128)
) -> Sweep:
    """One GPU with joules; actors by threads by share."""

    def rate(threads: Any, amount: Any, actors: Any) -> Any:
        supply, demand = 2600 * threads / (1 + 0.01 * threads), 26000 * amount**0.8
        return (supply**-5.0 + demand**-5.0 + (420.0 * actors) ** -5.0) ** (-1 / 5)

    asked: list[dict[str, Any]] = [
        {"part": "whole", "actors": n, "actor_cpus": c, "gpus": 1, "sm_share": s, "inference_batch": n}
        for n in sizes
        for c in (4, 8, 16)
        for s in (1.0, 0.5, 0.125)
    ]
    asked += [{"part": "supply", "actors": 128, "actor_cpus": c} for c in (2, 4, 8, 16)]
    asked += [{"part": "demand", "actors": 128, "gpus": 1, "sm_share": s} for s in (0.125, 0.25, 0.5, 1.0)]
    points = []
    for number, axes in enumerate(asked):
        actors = axes["actors"] if axes["part"] == "whole" else 1e6
        found = float(rate(axes.get("actor_cpus", 1e4), axes.get("sm_share", 1e3), actors))
        watts = 70.0 + 0.008 * found
        points.append(point(rate=found, number=number, boundary=boundary, watts=watts, **axes))
    points[5] = point(rate=None, number=5, **asked[5])
    curves = (
        curve(
            "supply",
            x_name="actor threads",
            x_unit="threads",
            low=2,
            high=16,
            function=lambda x: 2600 * x / (1 + 0.01 * x),
        ),
        curve(
            "demand",
            x_name="accelerator",
            x_unit="GPUs",
            low=0.125,
            high=1,
            function=lambda x: 26000 * x**0.8,
        ),
        curve(
            "rate_by_actors",
            x_name="actors",
            x_unit="actors",
            low=4,
            high=128,
            function=lambda x: rate(16, 1, x),
            actor_cpus=16.0,
            accelerators=1.0,
        ),
        curve(
            "rate_by_share",
            x_name="share of the accelerator",
            x_unit="1",
            low=0.125,
            high=1,
            function=lambda x: rate(16, x, 128),
            actor_cpus=16.0,
            actors=128.0,
        ),
        curve(
            "rate_by_ratio",
            x_name="threads per GPU",
            x_unit="1",
            low=4,
            high=128,
            function=lambda x: rate(x, 1, 128),
        ),
    )
    return build(points, gpu=True, boundary=boundary, curves=curves)
