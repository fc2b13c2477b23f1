import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cgratio.trainer import networks
from cgratio.trainer.config import TrainerConfig, learning_settings
from cgratio.trainer.environments import EnvironmentFacts
from cgratio.trainer.networks import Context, Outputs
from cgratio.trainer.r2d2 import R2D2, epsilons, n_step_returns, rescale, unscale
from cgratio.trainer.run import Run
from cgratio.trainer.unrolls import UnrollMemory

FACTS = EnvironmentFacts(shape=(5,), dtype=np.dtype(np.float32), actions=3, frame_skip=1, is_atari=False)


@given(st.floats(-1e4, 1e4))
def test_rescaling_is_undone(value):
    x = torch.tensor([value], dtype=torch.float64)
    torch.testing.assert_close(unscale(rescale(x)), x, rtol=1e-6, atol=1e-6)


def test_returns_are_sums_of_rewards_that_stop_at_an_episodes_end():
    random = np.random.default_rng(0)
    steps, n = 7, 3
    rewards = random.normal(size=(2, steps + n - 1))
    discounts = np.where(random.random((2, steps + n - 1)) < 0.3, 0.0, 0.9)
    values = random.normal(size=(2, steps + n))
    got = n_step_returns(*map(torch.from_numpy, (rewards, discounts, values)), steps=steps, n=n)
    for row in range(2):
        for step in range(steps):
            total, weight = 0.0, 1.0
            for k in range(n):
                total += weight * rewards[row, step + k]
                weight *= discounts[row, step + k]
            assert got[row, step].item() == pytest.approx(total + weight * values[row, step + n])


def test_actors_explore_from_two_fifths_down():
    found = epsilons(8)
    assert found[0] == pytest.approx(0.4)
    assert found[-1] == pytest.approx(0.4**8)
    assert (np.diff(found) < 0).all()


def test_actors_take_the_best_action_but_for_their_share_of_others():
    algorithm = R2D2(TrainerConfig(algorithm="r2d2", actors=2))
    choices = torch.zeros(4000, 1, 3)
    choices[:, 0, 1] = 1.0
    outputs = Outputs(choices, choices.amax(-1), None)
    actors = np.repeat([0, 1], 2000).astype(np.int32)
    actions = algorithm.choose(outputs, actors=actors, random=torch.Generator().manual_seed(0)).actions
    others = (actions != 1).float().reshape(2, 2000).mean(1)
    assert others[0] == pytest.approx(0.4 * 2 / 3, abs=0.04)
    assert others[1] == pytest.approx(0.0, abs=0.01)


def batch_of(algorithm, *, rows=2):
    """Unrolls of random transitions, with the weights that a replay would give."""
    random = np.random.default_rng(3)
    memory = UnrollMemory(algorithm.layout, rows, FACTS)
    memory.rows[:] = random.normal(size=memory.rows.shape)
    memory.actions[:] = random.integers(0, 3, memory.actions.shape)
    memory.rewards[:] = random.normal(size=memory.rewards.shape)
    memory.discounts[:] = 0.9
    if memory.states is not None:
        memory.first[:] = random.random(memory.first.shape) < 0.2
        memory.states[:] = random.normal(size=memory.states.shape)
    return memory.gather(list(range(rows)), weights=torch.ones(rows))


@pytest.mark.parametrize("lstm", [0, 4])
def test_the_loss_is_that_of_the_papers_targets(lstm):
    config = TrainerConfig(
        algorithm="r2d2", network="mlp", lstm=lstm, burn_in=3, unroll_length=4, n_step=2, target_period=1
    )
    algorithm = R2D2(config)
    network = networks.build(config, FACTS, heads=algorithm.heads)
    torch.nn.init.normal_(network.heads.first.weight)
    algorithm.updated(network, updates=0)
    batch = batch_of(algorithm)
    with torch.no_grad():
        for weights in network.parameters():  # the target network is another one from here on
            weights.add_(0.1 * torch.randn_like(weights))
    found = algorithm.loss(network, batch)

    warm = 3 if lstm else 0
    assert batch.actions.shape[1] == warm + 4 + 2 - 1
    context = Context(batch.last_actions, batch.last_rewards, batch.first, batch.states) if lstm else None
    online = network(batch.observations, context).choices.detach()
    target = algorithm._target(batch.observations, context).choices.detach()
    errors = torch.zeros(2, 4)
    for row in range(2):
        for step in range(4):
            t = warm + step
            best = online[row, t + 2].argmax()
            after = unscale(target[row, t + 2, best])
            goal = batch.rewards[row, t] + 0.9 * batch.rewards[row, t + 1] + 0.81 * after
            errors[row, step] = rescale(goal) - online[row, t, batch.actions[row, t]]
    assert found.total.item() == pytest.approx(0.5 * errors.square().mean().item(), rel=1e-4)
    sizes = errors.abs()
    np.testing.assert_allclose(found.priorities, 0.9 * sizes.amax(1) + 0.1 * sizes.mean(1), rtol=1e-3)


def test_burning_in_teaches_nothing():
    config = TrainerConfig(algorithm="r2d2", network="mlp", lstm=4, burn_in=3, unroll_length=4, n_step=2)
    algorithm = R2D2(config)
    network = networks.build(config, FACTS, heads=algorithm.heads)
    algorithm.updated(network, updates=0)
    batch = batch_of(algorithm)
    batch.observations.requires_grad_()
    algorithm.loss(network, batch).total.backward()
    assert (batch.observations.grad[:, :3] == 0).all()
    assert (batch.observations.grad[:, 3:7] != 0).any()


def test_it_learns_cartpole():
    config = TrainerConfig(
        algorithm="r2d2",
        environment="CartPole-v1",
        network="mlp",
        lstm=32,
        actors=16,
        burn_in=5,
        unroll_length=10,
        n_step=3,
        learner_batch=32,
        replay_ratio=2.0,
        target_period=100,
        **learning_settings("r2d2", "mlp"),
    )
    run = Run(config)
    last = run.run(
        until=lambda now: now.episodes >= 100 and now.recent_return >= 200, learn_samples=1_000_000
    )
    run.close()
    assert last.recent_return >= 200
