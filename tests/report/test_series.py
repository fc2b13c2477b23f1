from dataclasses import replace

import pytest

from cgratio.analysis.facts import Quantity
from cgratio.report import series
from cgratio.results.words import Part


def whole(sweep):
    return [p for p in sweep.analysis.points if p.axes["part"] == Part.WHOLE]


def test_a_batch_that_follows_the_actors_does_not_break_a_line(quickstart):
    (line,) = series.along("actors", whole(quickstart))
    assert [p.axes["actors"] for p in line.points] == [1, 2, 4, 8, 16]
    assert not line.label


def test_threads_that_auto_gives_by_the_actors_do_not_break_a_line(quickstart):
    """On 16 CPUs, `actor_cpus: auto` is 1, 2, 4, 15 and 15 for these actors."""
    threads = {1: 1, 2: 2, 4: 4, 8: 15, 16: 15}
    points = [
        replace(p, axes=p.axes | {"actor_cpus": threads[p.axes["actors"]]})
        for p in whole(quickstart)
        if p.axes["sm_share"] == 1.0
    ]
    (line,) = series.along("actors", points)
    assert [p.axes["actors"] for p in line.points] == [1, 2, 4, 8, 16]


def test_a_batch_of_its_own_makes_lines_of_its_own(quickstart):
    points = [
        replace(p, axes=p.axes | {"inference_batch": batch}) for p in whole(quickstart) for batch in (1, 2)
    ]
    assert [line.label for line in series.along("actors", points)] == [
        "inference batch 1",
        "inference batch 2",
    ]


def test_the_line_of_the_curve_goes_first(with_joules):
    found = series.along("actors", whole(with_joules), first={"actor_cpus": 8.0, "accelerators": 0.5})
    assert found[0].label == "8 actor CPUs · share 0.5"


def test_threads_per_accelerator_count_the_share(quickstart, with_joules):
    quarter = next(p for p in quickstart.analysis.points if p.axes["sm_share"] == 0.25)
    assert series.threads_per_accelerator(quarter) == 4.0
    assert series.accelerators(quarter) == 0.25
    supply = next(p for p in with_joules.analysis.points if p.axes["part"] == Part.SUPPLY)
    assert series.threads_per_accelerator(supply) is None


def test_slowdown_has_two_readings(quickstart):
    points = whole(quickstart)
    base, half = (
        points[4],
        replace(points[5], rate=replace(points[5].rate, value=500.0, low=480.0, high=520.0)),
    )
    base = replace(base, rate=replace(base.rate, value=1000.0, low=960.0, high=1040.0))
    (line,) = series.along("sm_share", [base, half])
    slow, zero = series.slowdowns(line)
    assert slow.lost == pytest.approx(0.5)
    assert slow.added == pytest.approx(1.0)
    assert slow.lost_interval is not None
    assert slow.lost_interval[0] < 0.5 < slow.lost_interval[1]
    assert slow.lost_interval[1] - slow.lost_interval[0] == pytest.approx(2 * 0.5 * 0.0566, rel=0.02)
    assert (zero.lost, zero.added, zero.lost_interval) == (0.0, 0.0, (0.0, 0.0))


def test_a_slowdown_without_intervals_has_none(quickstart):
    def bare(point):
        alone = Quantity(value=point.rate.value, unit="samples/s", reason="one replicate")
        return replace(point, rate=alone)

    (line,) = series.along("sm_share", [bare(p) for p in whole(quickstart)[4:]])
    assert all(one.lost_interval is None for one in series.slowdowns(line)[:-1])
