import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgratio.results.words import Part
from cgratio.trainer.config import TrainerConfig, TrainerError
from cgratio.trainer.environments import EndlessEnvironments, describe, make_environments
from cgratio.trainer.gymnasium_environments import EnvironmentFailedError
from cgratio.trainer.run import Run
from cgratio.workload import training

CARTPOLE = {"environment": "gymnasium:CartPole-v1", "network": "mlp"}


@pytest.fixture(autouse=True, scope="module")
def own():
    """Makes `own_environments` importable, as a user's package would be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parent)
        import own_environments

        yield own_environments


def environments(name, *, actors=2, threads=1, batch=None, seed=0):
    config = TrainerConfig(
        environment=f"own_environments:{name}",
        actors=actors,
        actor_threads=threads,
        inference_batch=batch,
        seed=seed,
    )
    return closing(make_environments(config))


class Expected:
    """Where a scripted environment must be."""

    def __init__(self, own, seed):
        self.own, self.seed, self.episode, self.time, self.over = own, seed, -1, 0, True

    def turn(self, action):
        """What it returns to an action, counted from 0: observation, reward, flags, fresh."""
        if self.over:
            self.episode, self.time, self.over = self.episode + 1, 0, False
            return [self.seed, self.episode, 0, -1], 0, False, False, True
        self.time += 1
        self.over = self.time == self.own.length(self.seed, self.episode)
        how = self.own.ending(self.seed, self.episode)
        observed = [self.seed, self.episode, self.time, 10 + action]
        return observed, self.seed * 100 + self.time, self.over and how != 1, self.over and how == 1, False


@settings(max_examples=8)
@given(data=st.data())
def test_every_transition_comes_once_and_environments_never_mix(own, data):
    actors = data.draw(st.integers(1, 7), label="actors")
    batch = data.draw(st.integers(1, actors), label="batch")
    workers = data.draw(st.integers(1, 4), label="workers")
    seed = data.draw(st.integers(0, 50), label="seed")
    random = np.random.default_rng(data.draw(st.integers(0, 9), label="actions"))
    expected = [Expected(own, seed + index) for index in range(actors)]
    due = {index: actor.turn(0) for index, actor in enumerate(expected)}
    with environments("Scripted", actors=actors, threads=workers, batch=batch, seed=seed) as made:
        assert len(made.processes) == min(workers, actors)
        assert made.count == actors
        for _ in range(60):
            outcomes = made.receive()
            assert outcomes.ids.shape == (batch,)
            assert outcomes.observations.shape == (batch, 4)
            for row, index in enumerate(outcomes.ids.tolist()):
                observation, reward, terminated, truncated, fresh = due.pop(index)
                assert outcomes.observations[row].tolist() == observation
                assert (outcomes.terminated[row], outcomes.truncated[row]) == (terminated, truncated)
                assert outcomes.fresh[row] == fresh
                assert fresh or outcomes.rewards[row] == reward
            actions = random.integers(0, 5, batch, dtype=np.int32)
            for index, action in zip(outcomes.ids.tolist(), actions.tolist(), strict=True):
                due[index] = expected[index].turn(action)
            made.send(actions, outcomes.ids)


def test_a_batch_stays_as_it_was_received():
    with environments("Scripted", actors=2, batch=2) as made:
        before = made.receive()
        kept = before.observations.copy()
        for _ in range(3):
            made.send(np.zeros(2, np.int32), before.ids)
            made.receive()
        assert (before.observations == kept).all()


def test_facts():
    own, cartpole = describe("own_environments:Scripted"), describe("gymnasium:CartPole-v1")
    assert (own.shape, own.dtype, own.actions, own.frame_skip) == ((4,), np.float64, 5, 3)
    assert (cartpole.shape, cartpole.dtype, cartpole.actions) == ((4,), np.float32, 2)
    assert cartpole.frame_skip == 1
    assert not cartpole.is_atari


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ("gymnasium:CartPol-v1", "not one that gymnasium knows; did you mean gymnasium:CartPole-v1"),
        ("gymnasium:no_such_module:Thing-v0", "cannot be made: ModuleNotFoundError: No module named"),
        ("no_such_module:factory", "'no_such_module:factory' cannot be imported: ModuleNotFoundError"),
        ("own_environments:missing", "cannot be imported: AttributeError"),
        ("own_environments:number", "is no factory: it cannot be called"),
        ("own_environments:broken", "cannot be made: OSError: no licence for the simulator$"),
        ("own_environments:no_environment", "made an object of type int; it must return a gymnasium.Env"),
        ("own_environments:Continuous", r"has actions Box\(.*; this trainer takes discrete actions only"),
        ("own_environments:Named", r"observes Dict\(.*; this trainer takes arrays only"),
        ("own_environments:Numbered", r"observes Discrete\(16\); this trainer takes arrays only"),
        ("own_environments:Unwilling", "environment 0 of .* raised RuntimeError: no simulator answers$"),
        ("own_environments:Misshapen", r"an observation has shape \(1,\), its space says \(3,\)"),
        ("own_environments:Overflowing", "raised .*cast"),
    ],
)
def test_what_cannot_run_is_refused_in_a_sentence(environment, message):
    with pytest.raises(TrainerError, match=message) as raised:
        describe(environment)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Raising", "environment 1 of own_environments:Raising raised ValueError: the robot fell over"),
        ("Leaving", "environment 1 of own_environments:Leaving raised SystemExit: I am leaving"),
        ("Exiting", "environments 0-1 of .* exited with code 7 while it stepped environment 1"),
        ("Killed", "environments 0-1 of .* was killed by SIGKILL while it stepped environment 1"),
        ("Leftover", "environments 0-1 of .* was killed by SIGKILL while it stepped environment 1"),
    ],
)
def test_a_failure_is_told_with_its_environment_and_never_waited_for(name, message):
    with environments(name, actors=4, threads=2, batch=4) as made:
        outcomes = made.receive()
        start = time.perf_counter()
        made.send(np.zeros(4, np.int32), outcomes.ids)
        for _ in range(2):  # and told again to who asks again
            with pytest.raises(EnvironmentFailedError, match=message):
                made.receive()
        made.send(np.zeros(4, np.int32), outcomes.ids)
        assert time.perf_counter() - start < 5


def test_a_failure_ends_a_run_with_its_error():
    run = Run(TrainerConfig(environment="own_environments:Killed", network="mlp", actors=2))
    with pytest.raises(EnvironmentFailedError, match="killed by SIGKILL"):
        run.run(until=lambda _: False)
    run.close()


def test_workers_load_little_and_compute_on_one_thread():
    with environments("Reporter", actors=1) as made:
        heavy, threads, _ = made.receive().observations[0].tolist()
        (worker,) = made.processes
        assert (heavy, threads) == (0, 1)
        assert made.threads == frozenset()
        assert psutil.Process(worker).num_threads() == 1


def test_workers_ignore_an_interrupt_and_end_when_closed():
    with environments("Plain", actors=2, threads=2, batch=2) as made:
        outcomes = made.receive()
        for worker in made.processes:
            os.kill(worker, signal.SIGINT)
        made.send(np.zeros(2, np.int32), outcomes.ids)
        assert not made.receive().fresh.any()
    assert not any(map(psutil.pid_exists, made.processes))
    made.close()  # once more does no harm


def test_a_stuck_environment_does_not_hold_up_the_end():
    with environments("Stuck", actors=1) as made:
        made.send(np.zeros(1, np.int32), made.receive().ids)
        start = time.perf_counter()
    assert time.perf_counter() - start < 10
    assert not any(map(psutil.pid_exists, made.processes))


def test_environments_that_nobody_closes_end_when_nobody_holds_them():
    made = make_environments(TrainerConfig(**CARTPOLE, actors=1))
    processes = made.processes
    del made
    assert not any(map(psutil.pid_exists, processes))


def test_workers_die_with_their_parent():
    code = (
        "import os, signal\n"
        "from cgratio.trainer.config import TrainerConfig\n"
        "from cgratio.trainer.environments import make_environments\n"
        "made = make_environments(TrainerConfig(environment='own_environments:Stuck', actors=2,"
        " actor_threads=2))\n"
        "ids = made.receive().ids\n"
        "made.send(ids, ids)\n"
        "print(*made.processes, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        env=os.environ | path,
        stdout=subprocess.PIPE,
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL
    workers = [int(pid) for pid in done.stdout.split()]
    assert len(workers) == 2
    deadline = time.monotonic() + 10
    while any(map(_runs, workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("shape", [{}, {"inference": "local"}, {"actor_groups": 2}])
@pytest.mark.parametrize("algorithm", ["impala", "r2d2"])
def test_training_runs_on_them(shape, algorithm):
    config = TrainerConfig(
        **CARTPOLE,
        **shape,
        algorithm=algorithm,
        lstm=8,
        actors=6,
        actor_threads=2,
        learner_batch=4,
        burn_in=3,
    )
    run = Run(config)
    last = run.run(until=lambda _: False, learn_samples=2_000)
    run.close()
    assert last.learned >= 2_000
    assert last.episodes > 0
    assert last.recent_return > 1
    assert len(run.actor_processes) == 2
    assert len(run.actor_threads) == (2 if config.inference == "local" else 0)


def test_their_processor_time_is_that_of_the_environments():
    run = Run(
        TrainerConfig(environment="own_environments:Busy", part=Part.SUPPLY, actors=2, inference_batch=1)
    )
    before = run.progress()
    last = run.run(until=lambda now: now.samples >= 200)
    run.close()
    samples = last.samples - before.samples
    assert last.environment_cpu_s - before.environment_cpu_s == pytest.approx(0.002 * samples, rel=0.3)
    assert last.device_cpu_s - before.device_cpu_s < last.environment_cpu_s


def test_the_demand_side_replays_what_they_observed():
    config = TrainerConfig(environment="own_environments:Scripted", actors=6, inference_batch=4, seed=20)
    made = EndlessEnvironments(config)
    assert made.facts.actions == 5
    assert made.processes == frozenset()
    seeds = {seed for _ in range(8) for seed in made.receive().observations[:, 0].tolist()}
    assert seeds == {20, 21, 22, 23}


def test_a_trial_pins_them_and_counts_them():
    cpus = sorted(os.sched_getaffinity(0))
    main, actor = str(cpus[0]), str(cpus[-1])
    request = training.Request(
        trainer={**CARTPOLE, "actors": 4, "actor_threads": 2},
        pinned=True,
        actor_cpu_list=actor,
        main_cpu_list=main,
    )
    receive, send = os.pipe()
    command = [sys.executable, "-m", "cgratio.workload.training", str(send), str(os.getpid())]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}  # as a trial's supervisor has it
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[send], env=one_thread) as workload,
        os.fdopen(receive) as lines,
    ):
        os.close(send)
        workload.stdin.write(request.line())
        workload.stdin.flush()
        ready = json.loads(lines.readline())
        assert ready["kind"] == "ready"
        assert (ready["actor_cpu_list"], ready["device_cpu_list"]) == (actor, main)
        assert ready["actor_threads"] == 2
        while json.loads(lines.readline())["samples"] < 500:
            continue
        workload.stdin.close()
        *_, count, final = map(json.loads, lines)
    assert workload.returncode == 0
    assert count["environment_cpu_s"] > 0
    assert final["drifted"] == []
