from generate import Place, Truth, grid, make_rows, one_row, quickstart, results_of
from scipy import optimize

from cgratio.analysis.analyse import analyse
from cgratio.analysis.facts import Optimum, Origin

POWERED = Truth(demand=9000.0, delta=0.0, latency_s=1 / 400, base_w=20.0, thread_w=4.0)


def energy_of(rows: list[dict]) -> Optimum:
    optimum = analyse(results_of(rows)).optima[1]
    assert optimum.goal == "samples_per_joule"
    return optimum


def best_threads(truth: Truth, *, actors: float) -> float:
    def loss(threads: float) -> float:
        rate = truth.rate(threads=threads, amount=1.0, actors=actors)
        return -rate / (truth.base_w + truth.thread_w * threads + truth.sample_j * rate)

    return float(optimize.minimize_scalar(loss, bounds=(1.0, 8.0), method="bounded").x)


def test_the_peak_of_samples_per_joule_lies_in_its_interval() -> None:
    truth = best_threads(POWERED, actors=64)
    hits = 0
    for seed in range(12):
        found = energy_of(make_rows(truth=POWERED, places=grid(), seed=seed))
        assert found.threads_per_accelerator.origin is Origin.FITTED
        hits += found.threads_per_accelerator.low <= truth <= found.threads_per_accelerator.high
        assert round(truth) in found.near_optimal
    assert hits >= 10


def test_modelled_energy_keeps_its_origin_and_label() -> None:
    truth = Truth(demand=9000.0, latency_s=1 / 400, base_w=20.0, thread_w=4.0, boundary="modelled")
    found = analyse(results_of(make_rows(truth=truth, places=grid())))
    assert found.optima[1].threads_per_accelerator.origin is Origin.MODELLED
    assert "modelled" in found.labels
    assert "(modelled energy)" in found.answer


def test_without_a_sensor_the_stored_reason_is_given() -> None:
    found = energy_of(make_rows(truth=Truth(), places=grid()))
    assert found.threads_per_accelerator.reason == "no energy sensor is readable"
    assert found.near_optimal == ()


def test_one_thread_count_gives_no_curve() -> None:
    found = energy_of(make_rows(truth=Truth(base_w=20.0), places=quickstart()))
    assert "one thread count only" in found.threads_per_accelerator.reason


def test_free_threads_have_no_peak_in_range() -> None:
    truth = Truth(demand=9000.0, latency_s=1 / 400, base_w=20.0, thread_w=0.0)
    found = energy_of(make_rows(truth=truth, places=grid(), noise=0.01))
    assert found.threads_per_accelerator.value is None
    assert "no peak in range" in found.threads_per_accelerator.reason
    assert 8 in found.near_optimal


def test_boundaries_are_not_compared_with_each_other() -> None:
    rows = make_rows(truth=POWERED, places=grid())
    for row in rows:
        if row["actor_cpus"] == 8:
            row["samples_per_joule_boundary"] = "node"
            row["energy_node_j"] = row["energy_cpu_package_j"]
    assert "different boundaries (cpu_package, node)" in energy_of(rows).threads_per_accelerator.reason


def test_without_replicates_the_peak_has_no_interval() -> None:
    found = energy_of(make_rows(truth=POWERED, places=grid(), replicates=1)).threads_per_accelerator
    assert found.value is not None
    assert (found.low, found.high) == (None, None)
    assert "one replicate" in found.reason


def test_a_single_point_with_joules_is_no_curve() -> None:
    rows = make_rows(truth=POWERED, places=[Place(threads=1), Place(threads=2)], replicates=1)
    assert energy_of(rows).threads_per_accelerator.value is None
    assert energy_of([one_row()]).threads_per_accelerator.value is None
