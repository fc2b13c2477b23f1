import pytest

from cgratio.analysis.bottleneck import find_bottleneck
from cgratio.analysis.facts import Bottleneck
from cgratio.results.words import Part


@pytest.mark.parametrize(
    ("shares", "expected", "quoted"),
    [
        ({"env": 0.62, "device_busy": 0.97}, Bottleneck.ACCELERATOR, "device busy 97%, actor CPUs busy 62%"),
        ({"env": 0.98, "device_busy": 0.40}, Bottleneck.ENVIRONMENTS, "device busy 40%, actor CPUs busy 98%"),
        ({"env": 0.99, "device_busy": 0.92}, Bottleneck.ENVIRONMENTS, "92%"),
        ({"env": 0.30, "device_busy": 0.30}, Bottleneck.ACTORS, "30%"),
        ({"device_busy": 0.95}, Bottleneck.ACCELERATOR, "unknown"),
        ({"device_busy": 0.50}, Bottleneck.UNKNOWN, "unknown"),
        ({"env": 0.2, "learner": 0.95}, Bottleneck.ACCELERATOR, "learner loop busy 95%"),
        ({"env": 0.2, "learner": 0.1, "inference": 0.93}, Bottleneck.ACCELERATOR, "inference 93%"),
        (
            {"env": 0.2, "learner": 0.5, "backpressure": 0.4},
            Bottleneck.ACCELERATOR,
            "held back by the learner 40%",
        ),
        ({"env": 0.95, "learner": 0.5, "backpressure": 0.1}, Bottleneck.ENVIRONMENTS, "95%"),
        ({"env": 0.2, "learner": 0.5, "inference": 0.3}, Bottleneck.ACTORS, "accelerator time unknown"),
        ({"env": 0.2}, Bottleneck.UNKNOWN, "20%"),
        ({}, Bottleneck.UNKNOWN, "no stage shares"),
    ],
)
def test_the_busy_part_is_the_limit(shares: dict[str, float], expected: Bottleneck, quoted: str) -> None:
    found, evidence = find_bottleneck(part=Part.WHOLE, shares=shares)
    assert found is expected
    assert quoted in evidence


def test_a_part_measured_alone_is_its_own_limit() -> None:
    assert find_bottleneck(part=Part.SUPPLY, shares={})[0] is Bottleneck.ENVIRONMENTS
    assert find_bottleneck(part=Part.DEMAND, shares={})[0] is Bottleneck.ACCELERATOR


def test_a_full_loop_that_drives_the_accelerator_limits_it_though_neither_side_is_busy() -> None:
    shares = {"device_busy": 0.4, "env": 0.5, "wait_batch": 0.02, "inference": 0.9, "transfer": 0.08}
    limit, evidence = find_bottleneck(part=Part.WHOLE, shares=shares)
    assert limit is Bottleneck.ACCELERATOR
    assert "drives inference busy 98%" in evidence
    held = {"device_busy": 0.4, "env": 0.5, "wait_batch": 0.2, "backpressure": 0.5, "learner": 0.99}
    assert find_bottleneck(part=Part.WHOLE, shares=held)[0] is Bottleneck.ACCELERATOR
    waiting = {"device_busy": 0.4, "env": 0.5, "wait_batch": 0.6, "backpressure": 0.0, "learner": 0.99}
    assert find_bottleneck(part=Part.WHOLE, shares=waiting)[0] is Bottleneck.ACTORS


def test_no_limit_is_named_where_other_processes_may_be_it() -> None:
    shares = {"env": 0.75, "device_busy": 0.60}
    assert find_bottleneck(part=Part.WHOLE, shares=shares, others=0.04)[0] is Bottleneck.ACTORS
    limit, evidence = find_bottleneck(part=Part.WHOLE, shares=shares, others=0.2)
    assert limit is Bottleneck.UNKNOWN
    assert "other processes had 20% of these CPUs" in evidence
    driven = {"env": 0.5, "device_busy": 0.5, "wait_batch": 0.02}
    assert find_bottleneck(part=Part.WHOLE, shares=driven, others=0.2)[0] is Bottleneck.UNKNOWN
    # One side is full in spite of them.
    full = {"env": 0.92, "device_busy": 0.3}
    assert find_bottleneck(part=Part.WHOLE, shares=full, others=0.2)[0] is Bottleneck.ENVIRONMENTS


def test_a_full_loop_on_the_actor_cpus_does_not_drive_the_accelerator() -> None:
    shares = {"env": 0.8, "device_busy": 0.4, "wait_batch": 0.02, "inference": 0.5}
    assert find_bottleneck(part=Part.WHOLE, shares=shares)[0] is Bottleneck.ACCELERATOR
    assert find_bottleneck(part=Part.WHOLE, shares=shares, local=True)[0] is Bottleneck.ACTORS


def test_a_demand_trial_says_what_kept_its_device_from_more() -> None:
    _, full = find_bottleneck(part=Part.DEMAND, shares={"device_busy": 0.97})
    assert full.endswith("device busy 97%")
    shares = {"device_busy": 0.43, "wait_batch": 0.01, "learner": 0.6}
    _, driven = find_bottleneck(part=Part.DEMAND, shares=shares)
    assert "device busy 43%, the loop that drives inference busy 99%" in driven
