"""The simplest peer: V-trace on envpool, acting and learning in turn or in two threads.

What a careful person writes in an afternoon with torch and envpool alone: the Nature network, T=20, one
update as soon as every environment of a batch has an unroll. It shares no code with cgratio, and reports the
samples so far until it is stopped.

    python benchmarks/peers/plain_vtrace.py --precision bf16 --learner-thread
"""

from __future__ import annotations

import argparse
import copy
import os
import queue
import threading
from collections.abc import Callable

import envpool
import numpy as np
import torch
from torch import nn
from torch.nn import functional

STEPS = 20


class Network(nn.Module):
    """The network of Mnih et al. 2015 with a policy and a value."""

    def __init__(self, actions: int, *, bf16: bool) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(3136, 512),
            nn.ReLU(),
        )
        self.policy, self.value = nn.Linear(512, actions), nn.Linear(512, 1)
        self.bf16 = bf16

    def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Maps uint8 pixels [batch, 4, 84, 84] to logits and values."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            features = self.body(pixels.float().div_(255))
        return self.policy(features.float()), self.value(features.float()).squeeze(-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--learner-thread", action="store_true", help="learn while acting")
    options = parser.parse_args()
    pool = envpool.make(
        "Pong-v5",
        env_type="gymnasium",
        num_envs=options.environments,
        batch_size=options.batch,
        num_threads=len(os.sched_getaffinity(0)),
        seed=1,
    )
    network = Network(pool.action_space.n, bf16=options.precision == "bf16")
    optimiser = torch.optim.RMSprop(network.parameters(), lr=6e-4, alpha=0.99, eps=0.01)
    if options.learner_thread:
        acting, learn = in_own_thread(network, optimiser)
    else:
        acting, learn = network, lambda unrolls: update(unrolls, network, optimiser)
    act(pool, acting, options, learn)


def in_own_thread(
    network: Network, optimiser: torch.optim.Optimizer
) -> tuple[Network, Callable[[list[list[tuple]]], None]]:
    """Starts the learner; returns a network to act with, which it keeps new, and what hands it a batch."""
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // 2))
    acting = copy.deepcopy(network)
    batches: queue.Queue[list[list[tuple]]] = queue.Queue(maxsize=1)

    def work() -> None:
        while True:
            update(batches.get(), network, optimiser)
            acting.load_state_dict(network.state_dict())

    threading.Thread(target=work, daemon=True).start()
    return acting, batches.put


def act(
    pool, network: Network, options: argparse.Namespace, learn: Callable[[list[list[tuple]]], None]
) -> None:
    unrolls: list[list[tuple]] = [[] for _ in range(options.environments)]
    ended = np.ones(options.environments, bool)
    ready: list[list[tuple]] = []
    samples = 0
    pool.async_reset()
    while True:
        pixels, rewards, terminated, truncated, info = pool.recv()
        ids = info["env_id"]
        with torch.inference_mode():
            logits, _ = network(torch.from_numpy(pixels))
            actions = torch.distributions.Categorical(logits=logits).sample()
        pool.send(actions.numpy().astype(np.int32), ids)
        samples += int((~ended[ids]).sum())
        done = terminated | truncated
        for row, actor in enumerate(ids):
            unroll = unrolls[actor]
            unroll.append((pixels[row], actions[row], logits[row], rewards[row], done[row], ended[actor]))
            ended[actor] = done[row]
            if len(unroll) == STEPS + 1:
                ready.append(unroll)
                unrolls[actor] = [unroll[-1]]
        if len(ready) >= options.batch:
            learn(ready[: options.batch])
            ready = ready[options.batch :]
            print(samples, "samples", flush=True)


def update(unrolls: list[list[tuple]], network: Network, optimiser: torch.optim.Optimizer) -> None:
    columns = [[list(column) for column in zip(*unroll, strict=True)] for unroll in unrolls]
    pixels = torch.from_numpy(np.stack([np.stack(column[0]) for column in columns]))
    actions = torch.stack([torch.stack(column[1][:-1]) for column in columns])
    behaviour = torch.stack([torch.stack(column[2][:-1]) for column in columns])
    rewards = torch.tensor(np.array([column[3][1:] for column in columns])).clamp(-1, 1)
    discounts = 0.99 * ~torch.tensor(np.array([column[4][1:] for column in columns]))
    weight = (~torch.tensor(np.array([column[5][1:] for column in columns]))).float()
    logits, values = network(pixels.flatten(0, 1))
    logits, values = logits.unflatten(0, pixels.shape[:2])[:, :-1], values.unflatten(0, pixels.shape[:2])
    log_policy = functional.log_softmax(logits, -1)
    log_target = log_policy.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    log_behaviour = functional.log_softmax(behaviour, -1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    with torch.no_grad():
        rhos = (log_target - log_behaviour).exp().clamp(max=1)
        deltas = rhos * (rewards + discounts * values[:, 1:] - values[:, :-1])
        correction, corrections = torch.zeros(len(unrolls)), []
        for step in reversed(range(rewards.shape[1])):
            correction = deltas[:, step] + discounts[:, step] * rhos[:, step] * correction
            corrections.append(correction)
        targets = values[:, :-1] + torch.stack(corrections[::-1], 1)
        following = torch.cat([targets[:, 1:], values[:, -1:]], 1)
        advantages = rhos * (rewards + discounts * following - values[:, :-1])
    entropy = -(log_policy.exp() * log_policy).sum(-1)
    loss = (
        weight * (-advantages * log_target + 0.25 * (targets - values[:, :-1]) ** 2 - 0.01 * entropy)
    ).mean()
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 40.0)
    optimiser.step()


if __name__ == "__main__":
    main()
