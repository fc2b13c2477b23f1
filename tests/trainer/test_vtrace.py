"""V-trace against the paper's equations, written out in float64."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from cgratio.trainer.vtrace import vtrace


def reference(rhos, discounts, rewards, values, bootstrap, rho_clip, c_clip):
    """Equation 1 of Espeholt et al. 2018, as a sum over all later steps, for one unroll."""
    steps = len(rewards)
    clipped, cs = np.minimum(rhos, rho_clip), np.minimum(rhos, c_clip)
    following = np.append(values[1:], bootstrap)
    deltas = clipped * (rewards + discounts * following - values)
    targets = np.empty(steps)
    for start in range(steps):
        total = values[start]
        for step in range(start, steps):
            weight = 1.0
            for inner in range(start, step):
                weight *= discounts[inner] * cs[inner]
            total += weight * deltas[step]
        targets[start] = total
    later = np.append(targets[1:], bootstrap)
    return targets, clipped * (rewards + discounts * later - values)


@st.composite
def unrolls(draw):
    batch, steps = draw(st.integers(1, 3)), draw(st.integers(1, 8))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (batch, steps)
    return {
        "rhos": np.exp(random.normal(0, 1.5, shape)),
        "discounts": 0.99 * (random.random(shape) > 0.2),
        "rewards": random.normal(0, 2, shape),
        "values": random.normal(0, 3, shape),
        "bootstrap": random.normal(0, 3, batch),
    }


def compute(case, *, rho_clip=1.0, c_clip=1.0):
    return vtrace(
        log_rhos=torch.from_numpy(np.log(case["rhos"])),
        discounts=torch.from_numpy(case["discounts"]),
        rewards=torch.from_numpy(case["rewards"]),
        values=torch.from_numpy(case["values"]),
        bootstrap_value=torch.from_numpy(case["bootstrap"]),
        rho_clip=rho_clip,
        c_clip=c_clip,
    )


@given(case=unrolls(), rho_clip=st.sampled_from([0.5, 1.0, 3.0]), c_clip=st.sampled_from([0.5, 1.0, 3.0]))
def test_agrees_with_the_papers_equation(case, rho_clip, c_clip):
    found = compute(case, rho_clip=rho_clip, c_clip=c_clip)
    for row in range(len(case["rewards"])):
        targets, advantages = reference(
            case["rhos"][row],
            case["discounts"][row],
            case["rewards"][row],
            case["values"][row],
            case["bootstrap"][row],
            rho_clip,
            c_clip,
        )
        np.testing.assert_allclose(found.values[row].numpy(), targets, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.advantages[row].numpy(), advantages, rtol=1e-9, atol=1e-9)


@given(case=unrolls())
def test_on_policy_the_target_is_the_n_step_return(case):
    case = case | {"rhos": np.ones_like(case["rhos"])}
    found = compute(case)
    for row in range(len(case["rewards"])):
        expected = case["bootstrap"][row]
        for step in reversed(range(case["rewards"].shape[1])):
            expected = case["rewards"][row, step] + case["discounts"][row, step] * expected
            np.testing.assert_allclose(found.values[row, step].item(), expected, rtol=1e-9, atol=1e-9)


def test_nothing_flows_back_through_an_episodes_end():
    found = compute(
        {
            "rhos": np.ones((1, 2)),
            "discounts": np.array([[0.0, 0.9]]),
            "rewards": np.array([[1.0, 100.0]]),
            "values": np.zeros((1, 2)),
            "bootstrap": np.array([1000.0]),
        }
    )
    assert found.values[0, 0].item() == 1.0
