from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgratio.machine.host import read_host
from cgratio.machine.topology import Cpu, Topology
from cgratio.sweep.document import SpecError
from cgratio.sweep.host import SweepHost
from cgratio.sweep.plan import MOST_TRIALS, make_plan
from cgratio.sweep.reading import load_spec
from cgratio.sweep.spec import Spec


def host(cpus=8, *, cuda=False):
    """A host of so many single-threaded cores."""
    real = read_host()
    topology = Topology(
        cpus=tuple(
            Cpu(id=cpu, core=cpu, package=0, node=0, l3=0, max_frequency_hz=None, core_class=None)
            for cpu in range(cpus)
        ),
        nodes=(),
        model_name="test",
        notes=(),
    )
    limits = replace(real.limits, allowed=frozenset(range(cpus)), quota_cpus=None)
    return SweepHost(host=replace(real, topology=topology, limits=limits), cuda=cuda, cuda_reason="no GPU")


def plan(axes, *, cpus=8, **fields):
    return make_plan(Spec.model_validate({"name": "t", "axes": axes, **fields}), host(cpus))


def test_each_block_holds_every_point_once_in_an_order_of_its_own():
    found = plan({"actors": [1, 2, 4, 8, 16], "actor_cpus": [1, 2]}, replicates=3, seed=7, sentinel="none")
    blocks = [[trial.point_id for trial in found.trials if trial.block == block] for block in range(3)]
    assert len(found.points) == 10
    assert all(Counter(block) == Counter(blocks[0]) for block in blocks)
    assert len({tuple(block) for block in blocks}) == 3
    assert [trial.order for trial in found.trials] == [*range(30)]


def test_the_order_is_the_seeds():
    axes = {"actors": [1, 2, 4, 8]}
    one, same, other = (plan(axes, seed=seed) for seed in (1, 1, 2))
    assert one.trials == same.trials
    assert [trial.axes for trial in one.trials] != [trial.axes for trial in other.trials]


@settings(max_examples=30)
@given(
    actors=st.lists(st.integers(1, 200), min_size=1, max_size=4, unique=True), replicates=st.integers(1, 6)
)
def test_no_two_replicates_share_an_environment(actors, replicates):
    # Case A2: env i of seed s is env 0 of seed s + i.
    found = plan({"actors": actors}, replicates=replicates)
    for point in {trial.point_id for trial in found.trials}:
        used = [
            trial.seed + environment
            for trial in found.trials
            if trial.point_id == point
            for environment in range(trial.axes["actors"])
        ]
        assert len(used) == len(set(used))


def test_trial_ids_are_unique_and_change_with_what_a_trial_is():
    axes = {"actors": [1, 2], "actor_cpus": 1}
    base = plan(axes)
    assert len({trial.trial_id for trial in base.trials}) == len(base.trials) == 6
    for changed in ({"trainer": {"discount": 0.5}}, {"trial": {"max_s": 99}}, {"seed": 5}):
        assert not {trial.trial_id for trial in plan(axes, **changed).trials} & {
            t.trial_id for t in base.trials
        }


def test_axes_that_a_part_does_not_have_are_null_and_make_no_points():
    learning = {"network": ["nature_cnn", "mlp"], "unroll_length": [5, 20], "learner_batch": [4, 8]}
    device = {"sm_share": [1.0, 0.5], "device_cpus": [1, 2], "precision": ["fp32", "bf16"]}
    supply = plan({"part": "supply", "actor_cpus": [1, 2], **learning, **device}).points
    assert [point["actor_cpus"] for point in supply] == [1, 2]
    for name in (*learning, *device, "gpus"):
        assert {point[name] for point in supply} == {None}
    demand = plan({"part": "demand", "actor_cpus": [1, 2], "device_cpus": [1, 2]}).points
    assert [(point["actor_cpus"], point["device_cpus"]) for point in demand] == [(None, 1), (None, 2)]
    assert len(plan({"part": "demand", **learning}).points) == 2 * 8  # auto gives two counts of device CPUs


def test_a_trainer_is_told_nothing_of_an_axis_that_its_part_does_not_have(tmp_path):
    from cgratio.trainer.config import TrainerConfig

    found = plan({"part": ["supply", "demand"], "network": "mlp", "unroll_length": 7}, replicates=1)
    configs = [TrainerConfig(**request.trainer) for _, request in found.requests(tmp_path)]
    assert {config.part: config.unroll_length for config in configs} == {"supply": 20, "demand": 7}


def test_what_only_some_parts_have_does_not_vary():
    found = plan({"part": ["whole", "supply", "demand"], "actors": 8, "device_cpus": 1})
    assert found.varying == ("part", "actor_cpus")
    assert found.fixed["network"] == "nature_cnn"


@pytest.mark.parametrize(
    ("cpus", "whole", "supply", "demand"),
    [
        (2, [1], [1, 2], [1, 2]),
        (4, [3], [2, 4], [1, 2]),
        (16, [15], [8, 16], [1, 2]),
    ],
)
def test_auto_is_answered_by_the_host(cpus, whole, supply, demand):
    def values(part, axis):
        return sorted({point[axis] for point in plan({"part": part}, cpus=cpus).points})

    assert values("whole", "actor_cpus") == whole
    assert values("whole", "device_cpus") == [1]
    assert values("supply", "actor_cpus") == supply
    assert values("demand", "device_cpus") == demand
    assert values("whole", "device") == ["cpu"]


@pytest.mark.parametrize("cuda", [False, True])
@pytest.mark.parametrize("cpus", [2, 3, 4, 8, 20, 64, 128, 256])
def test_the_quickstart_has_enough_points_and_not_too_many_on_any_host(cpus, cuda):
    spec = load_spec(Path(__file__).parents[2] / "sweeps" / "quickstart.yaml")
    found = make_plan(spec, host(cpus, cuda=cuda))
    parts = Counter(point["part"] for point in found.points)
    assert parts["whole"] == (5 if cuda else 7)
    assert parts["supply"] == 2
    assert parts["demand"] == (1 if cuda else 2)
    assert found.most_s < 6 * 60
    assert max(point["actors"] for point in found.points) >= cpus


def test_a_gpu_that_cannot_be_used_is_not_passed_over_in_silence():
    bare = host(8)
    inventory = replace(bare.host.inventory, gpus=("a card",))
    with_gpu = replace(bare, host=replace(bare.host, inventory=inventory))
    assert make_plan(Spec.model_validate({"name": "t", "axes": {}}), with_gpu).notes == (
        "this host has a GPU that is not used: no GPU",
    )


def test_a_gpu_is_used_where_there_is_one():
    spec = Spec.model_validate({"name": "t", "axes": {}})
    points = make_plan(spec, host(16, cuda=True)).points
    assert {(point["device"], point["gpus"], point["device_cpus"]) for point in points} == {("cuda", 1, 2)}


def test_points_that_grids_share_are_measured_once():
    found = plan([{"actors": [1, 2], "actor_cpus": 1}, {"actors": [2, 4], "actor_cpus": 1}])
    assert [point["actors"] for point in found.points] == [1, 2, 4]


def test_excluded_points_do_not_count_against_the_limit():
    axes = {"actors": [*range(1, 1000)], "actor_cpus": 1, "learner_batch": [*range(1, 52)]}
    assert len(plan(axes, replicates=2, exclude=["learner_batch > 1", "actors > 9"]).points) == 9


def test_excluded_points_are_left_out():
    found = plan({"actors": [1, 2, 4], "actor_cpus": [1, 2]}, exclude=["actors < actor_cpus", "actors == 4"])
    assert [(point["actors"], point["actor_cpus"]) for point in found.points] == [(1, 1), (2, 1), (2, 2)]
    # An expression over an axis that a point does not have leaves it in.
    assert plan({"part": "demand"}, exclude=["actor_cpus > 0"]).points


def test_a_sentinel_is_measured_from_the_first_trial_of_a_sweep_to_its_last():
    axes = [{"part": "supply", "actors": [1, 2]}, {"actors": [1, 2, 4, 8, 16], "actor_cpus": 1}]
    found = plan(axes, replicates=3)
    sentinels = [trial for trial in found.trials if trial.sentinel]
    assert len(found.points) == 8  # auto gives a supply point of two actors two counts of CPUs
    assert [(trial.order, trial.block) for trial in sentinels] == [(0, 0), (13, 1), (26, 2)]
    # The middle point of the whole job, with environments of its own.
    assert {(trial.axes["part"], trial.axes["actors"]) for trial in sentinels} == {("whole", 4)}
    (point,) = {trial.point_id for trial in sentinels}
    same = [trial for trial in found.trials if trial.point_id == point]
    assert sorted(trial.replicate for trial in same) == [*range(6)]
    assert len({trial.seed for trial in same}) == 6
    assert found.sentinels == 3
    assert [trial.order for trial in found.trials] == [*range(27)]
    assert len({trial.trial_id for trial in found.trials}) == 27


@pytest.mark.parametrize(
    ("actors", "fields"),
    [
        ([1, 2, 4, 8, 16], {}),
        ([1, 2, 4, 8, 16, 32], {"replicates": 1}),
        ([1, 2, 4, 8, 16, 32], {"sentinel": "none"}),
    ],
)
def test_small_sweeps_and_those_that_want_none_have_no_sentinel(actors, fields):
    found = plan({"actors": actors, "actor_cpus": 1}, **fields)
    assert found.sentinel is None
    assert not any(trial.sentinel for trial in found.trials)


def test_the_shipped_study_has_a_sentinel():
    spec = load_spec(Path(__file__).parents[2] / "sweeps" / "pong.yaml")
    assert make_plan(spec, host(4)).sentinels == spec.replicates


@pytest.mark.parametrize("share", [1.0, 0.25, 0.01])
def test_a_share_of_the_accelerator_is_waited_for_as_much_longer(tmp_path, share):
    found = plan({"sm_share": share}, replicates=1, trial={"setup_max_s": 100, "silence_max_s": 50})
    ((_, request),) = found.requests(tmp_path)
    assert (request.limits.setup_max_s, request.limits.silence_max_s) == (100 / share, 50 / share)
    assert request.limits.max_s == found.spec.trial.max_s


@pytest.mark.parametrize(
    ("axes", "fields", "message"),
    [
        ({"actor_cpus": 99}, {}, "99 actor CPUs and 1 device CPUs need 100 CPUs, but only 8 are allowed"),
        ({"actor_cpus": 8, "device_cpus": 1}, {}, "need 9 CPUs"),
        ({"device": "cuda"}, {}, "device is cuda, but no GPU; use cpu or auto"),
        ({"device": "cpu", "gpus": 1}, {}, "device is cpu and gpus is 1"),
        ({"actors": 2, "inference_batch": 4}, {}, "inference_batch is 4 with 2 actors"),
        ({"actors": 2}, {"exclude": ["actors == 2"]}, "the grid is empty after `exclude`"),
        ({"actors": 2}, {"exclude": ["actor == 2"]}, "names actor; axes are"),
        ({"actors": 2}, {"exclude": ["actors =="]}, "is not an expression over axes: invalid syntax"),
        (
            {"actors": 2},
            {"exclude": ["actors > 1; 2"]},
            "is not an expression over axes: it is more than one",
        ),
        ({"actors": 2}, {"exclude": ["__import__('os').abort()"]}, "is not an expression over axes"),
        ({"actors": 2}, {"exclude": ["environment[100] == 'x'"]}, "is not an expression over axes"),
        ({"actors": 2}, {"exclude": ["actors = 1"]}, "is not an expression over axes: = assigns; write =="),
        ({"actors": 2}, {"exclude": ["rand() < 2"]}, "it may compare and compute, and nothing else"),
        ({"actors": 2}, {"exclude": ["network.upper() == 'MLP'"]}, "is not an expression over axes"),
        (
            {"actors": [*range(1, 1000)], "actor_cpus": 1, "learner_batch": [*range(1, 52)]},
            {"replicates": 2},
            f"the sweep has 101,900 trials of 50,949 points; at most {MOST_TRIALS:,} are run",
        ),
    ],
)
def test_what_cannot_run_is_refused_before_anything_runs(axes, fields, message):
    with pytest.raises(SpecError) as error:
        plan(axes, **fields)
    assert message in str(error.value)


PROFILE = {"inference_s": 0.001, "observation_s": 0.0, "update_s": 0.01}


def test_supply_has_a_network_only_where_the_actors_infer():
    axes = {"part": ["supply"], "inference": ["central", "local"], "network": ["nature_cnn", "mlp"]}
    points = plan(axes | {"actor_cpus": [2]}).points
    assert [(point["inference"], point["network"]) for point in points] == [
        ("central", None),
        ("local", "nature_cnn"),
        ("local", "mlp"),
    ]


def test_the_core_and_the_replay_are_the_algorithms_own():
    points = plan({"algorithm": ["impala", "r2d2"], "replay_ratio": [1.0, 2.0]}).points
    assert [(point["algorithm"], point["lstm"], point["replay_ratio"]) for point in points] == [
        ("impala", 0, None),
        ("r2d2", 512, 1.0),
        ("r2d2", 512, 2.0),
    ]


@pytest.mark.parametrize(
    ("axes", "groups", "batch"),
    [
        ({"actors": 32, "actor_groups": 4}, 4, 4),
        ({"actors": 32, "inference": "local", "actor_cpus": 4}, None, 8),
        ({"actors": 7, "inference": "local", "actor_cpus": 2}, None, 3),
        ({"actors": 32, "inference": "local", "actor_cpus": 4, "inference_batch": 2}, None, 2),
    ],
)
def test_a_batch_is_within_its_group(axes, groups, batch):
    (point,) = plan(axes).points
    assert (point["actor_groups"], point["inference_batch"]) == (groups, batch)


@pytest.mark.parametrize(
    ("axes", "fields", "message"),
    [
        ({"actors": 3, "actor_groups": 4}, {}, "actors is 3 with 4 inference loops; each needs an actor"),
        (
            {"actors": 8, "actor_groups": 4, "inference_batch": 3},
            {},
            "inference_batch is 3 with 8 actors",
        ),
        ({"device": "emulated", "inference": "local"}, {"emulated": PROFILE}, "which only infers centrally"),
        ({"device": "emulated", "gpus": 1}, {"emulated": PROFILE}, "device is emulated and gpus is 1"),
    ],
)
def test_groups_and_devices_that_cannot_be_are_refused(axes, fields, message):
    with pytest.raises(SpecError, match=message):
        plan(axes, **fields)


def test_an_emulated_device_comes_with_its_profile_and_is_driven_by_two_threads(tmp_path):
    found = plan({"device": "emulated", "part": ["whole", "supply"]}, emulated=PROFILE)
    for trial, request in found.requests(tmp_path):
        assert request.trainer["profile"] == PROFILE | {"idle_w": None, "busy_w": None}
        assert trial.axes["gpus"] == (0 if trial.axes["part"] == "whole" else None)
        assert trial.axes["device_cpus"] == (2 if trial.axes["part"] == "whole" else None)


def test_another_profile_makes_other_trials():
    one, other = (
        plan({"device": "emulated"}, emulated=PROFILE | {"update_s": seconds}) for seconds in (0.01, 0.02)
    )
    assert {trial.trial_id for trial in one.trials}.isdisjoint(trial.trial_id for trial in other.trials)


def test_only_what_is_left_must_be_able_to_run():
    axes = {
        "environment": ["Pong-v5", "CartPole-v1"],
        "network": ["nature_cnn", "mlp"],
        "part": ["whole", "supply"],
        "actor_cpus": 1,
    }
    without = ["environment == 'CartPole-v1' and network == 'nature_cnn'"]
    refusals = {("CartPole-v1", "nature_cnn"): "nature_cnn cannot read CartPole-v1"}
    refusing = replace(host(8), refusals=refusals)
    spec = {"name": "t", "axes": axes}
    assert len(make_plan(Spec.model_validate(spec | {"exclude": without}), refusing).points) == 5
    with pytest.raises(SpecError, match="nature_cnn cannot read CartPole-v1"):
        make_plan(Spec.model_validate(spec), refusing)


def test_an_environment_that_does_not_exist_is_refused_in_every_part():
    refusing = replace(host(8), refusals={("Nope-v1", ""): "there is no Nope-v1"})
    spec = Spec.model_validate({"name": "t", "axes": {"environment": ["Nope-v1"], "part": ["supply"]}})
    with pytest.raises(SpecError, match="there is no Nope-v1"):
        make_plan(spec, refusing)


def test_what_the_trainer_would_refuse_is_refused_before_anything_runs():
    with pytest.raises(SpecError, match="replay_sequences is 512; it must be at least two batches, 600"):
        plan({"algorithm": "r2d2", "learner_batch": 300})


def test_the_device_alone_has_one_point_whatever_the_actors_cpus():
    axes = {"part": "demand", "inference": "local", "actor_cpus": [1, 2, 4], "device_cpus": 1}
    (point,) = plan(axes).points
    assert (point["actor_cpus"], point["inference_batch"]) == (None, None)


@pytest.mark.parametrize(
    "expression", ["replay_ratio > 1 or pinning == 'none'", "pinning == 'none' or replay_ratio > 1"]
)
def test_an_exclusion_that_names_an_axis_the_point_lacks_does_not_hold(expression):
    assert len(plan({"pinning": "none"}, exclude=[expression]).points) == 1
