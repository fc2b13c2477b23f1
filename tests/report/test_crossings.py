from dataclasses import replace

import pytest

from cgratio.report import crossings


def curves(sweep):
    return tuple(next(c for c in sweep.analysis.curves if c.name == n) for n in ("supply", "demand"))


def test_supply_meets_demand_where_both_are_equal(quickstart):
    supply, demand = curves(quickstart)
    one = next(c for c in crossings.crossings(supply, demand) if c.amount == 1.0)
    assert one.threads == pytest.approx(1900 / 1400, rel=0.01)
    assert one.low is not None
    assert one.high is not None
    assert one.low < one.threads < one.high
    assert not one.is_extrapolated


def test_demand_that_supply_never_reaches_has_no_crossing(quickstart):
    supply, demand = curves(quickstart)
    weak = replace(supply, y=tuple(y / 100 for y in supply.y))
    assert all(one.threads is None for one in crossings.crossings(weak, demand))


def test_a_crossing_below_the_drawn_curve_is_found_since_no_threads_supply_nothing(quickstart):
    supply, demand = curves(quickstart)
    strong = replace(supply, y=tuple(100 * y for y in supply.y))
    one = crossings.meet(strong, demand, 1.0)
    assert one.threads == pytest.approx(1900 / 140_000, rel=0.01)
    assert not one.is_extrapolated


def test_levels_near_to_each_other_leave_the_one_of_a_whole_accelerator(quickstart):
    supply, demand = curves(quickstart)
    levels = [crossings.meet(supply, demand, amount) for amount in (0.95, 1.0, 1.05, 2.0)]
    assert [one.amount for one in crossings.told_apart(levels, supply)] == [1.0, 2.0]
