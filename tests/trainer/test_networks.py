import numpy as np
import pytest
import torch

from cgratio.trainer import networks
from cgratio.trainer.config import TrainerConfig
from cgratio.trainer.environments import EnvironmentFacts
from cgratio.trainer.networks import LSTM, ActorCritic, Context, Dueling

FACTS = EnvironmentFacts(shape=(5,), dtype=np.dtype(np.float32), actions=3, frame_skip=1, is_atari=False)


def context(*, batch, steps, units, first=None):
    torch.manual_seed(1)
    if first is None:
        first = torch.zeros((batch, steps), dtype=torch.bool)
    return Context(
        torch.randint(0, 3, (batch, steps)), torch.randn(batch, steps), first, torch.randn(batch, 2 * units)
    )


def test_the_core_is_torchs_lstm_cell_over_features_last_action_and_reward():
    torch.manual_seed(0)
    core, features, seen = (
        LSTM(5, actions=3, units=4),
        torch.randn(2, 6, 5),
        context(batch=2, steps=6, units=4),
    )
    cell = torch.nn.LSTMCell(5 + 3 + 1, 4)
    with torch.no_grad():
        cell.weight_ih.copy_(core.inputs.weight)
        cell.bias_ih.copy_(core.inputs.bias)
        cell.weight_hh.copy_(core.recurrent.weight)
        cell.bias_hh.zero_()
    hidden, memory = seen.state.chunk(2, dim=-1)
    outputs, last = core(features, seen)
    for step in range(6):
        one_hot = torch.nn.functional.one_hot(seen.actions[:, step], 3)
        inputs = torch.cat([features[:, step], one_hot, seen.rewards[:, step, None]], dim=-1)
        hidden, memory = cell(inputs, (hidden, memory))
        torch.testing.assert_close(outputs[:, step], hidden)
    torch.testing.assert_close(last, torch.cat([hidden, memory], dim=-1))


def test_nothing_passes_the_first_step_of_an_episode():
    core, features = LSTM(5, actions=3, units=4), torch.randn(1, 6, 5)
    first = torch.tensor([[False, False, False, True, False, False]])
    one = context(batch=1, steps=6, units=4, first=first)
    other = one._replace(
        actions=(one.actions + 1) % 3 * ~first + one.actions * first,
        rewards=one.rewards + 1,
        state=one.state + 1,
    )
    # After the first step the two differ only by what came before it, and by its own last action and reward.
    other.actions[:, 4:], other.rewards[:, 4:] = one.actions[:, 4:], one.rewards[:, 4:]
    (before, _), (after, _) = core(features, one), core(features, other)
    assert not torch.allclose(before[:, :3], after[:, :3])
    torch.testing.assert_close(before[:, 3:], after[:, 3:])


def test_step_by_step_is_the_whole_sequence():
    config = TrainerConfig(network="mlp", lstm=4)
    network = networks.build(config, FACTS, heads=ActorCritic)
    observations, seen = torch.randn(2, 7, 5), context(batch=2, steps=7, units=4)
    whole = network(observations, seen)
    state = seen.state
    for step in range(7):
        columns = (column[:, step : step + 1] for column in seen[:3])
        part = network(observations[:, step : step + 1], Context(*columns, state=state))
        state = part.state
        torch.testing.assert_close(part.choices[:, 0], whole.choices[:, step])
        torch.testing.assert_close(part.values[:, 0], whole.values[:, step])
    torch.testing.assert_close(state, whole.state)


@pytest.mark.parametrize("lstm", [0, 4])
def test_a_dueling_network_values_a_state_by_its_best_action(lstm):
    network = networks.build(TrainerConfig(network="mlp", lstm=lstm), FACTS, heads=Dueling)
    outputs = network(torch.randn(2, 3, 5), context(batch=2, steps=3, units=4))
    torch.testing.assert_close(outputs.values, outputs.choices.max(-1).values)
