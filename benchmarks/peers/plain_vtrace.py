"""The simplest peer: V-trace on envpool in one thread, acting and learning in turn.

What a careful person writes in an afternoon with torch and envpool alone: the Nature network, T=20, one
update as soon as every environment of a batch has an unroll. It shares no code with cgratio.

    python benchmarks/peers/plain_vtrace.py --seconds 20 --precision bf16
"""

from __future__ import annotations

import argparse
import time

import envpool
import numpy as np
import torch
from torch import nn
from torch.nn import functional


def network(actions: int) -> tuple[nn.Module, nn.Module, nn.Module]:
    body = nn.Sequential(
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
    return body, nn.Linear(512, actions), nn.Linear(512, 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warm-up", type=float, default=5)
    parser.add_argument("--environments", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    options = parser.parse_args()
    steps, batch = 20, options.batch
    pool = envpool.make(
        "Pong-v5",
        env_type="gymnasium",
        num_envs=options.environments,
        batch_size=batch,
        num_threads=2,
        seed=1,
    )
    body, policy, value = network(pool.action_space.n)
    parameters = [*body.parameters(), *policy.parameters(), *value.parameters()]
    optimiser = torch.optim.RMSprop(parameters, lr=6e-4, alpha=0.99, eps=0.01)
    bf16 = options.precision == "bf16"

    def forward(pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            features = body(pixels.float().div_(255))
        return policy(features.float()), value(features.float()).squeeze(-1)

    unrolls: list[list[tuple]] = [[] for _ in range(options.environments)]
    ended = np.ones(options.environments, bool)
    ready: list[list[tuple]] = []
    samples, start = 0, 0.0
    pool.async_reset()
    begun = time.perf_counter()
    while not start or time.perf_counter() - start < options.seconds:
        if not start and time.perf_counter() - begun > options.warm_up:
            samples, start = 0, time.perf_counter()
        pixels, rewards, terminated, truncated, info = pool.recv()
        ids = info["env_id"]
        with torch.inference_mode():
            logits, _ = forward(torch.from_numpy(pixels))
            actions = torch.distributions.Categorical(logits=logits).sample()
        pool.send(actions.numpy().astype(np.int32), ids)
        samples += int((~ended[ids]).sum())
        done = terminated | truncated
        for row, actor in enumerate(ids):
            unroll = unrolls[actor]
            unroll.append((pixels[row], actions[row], logits[row], rewards[row], done[row], ended[actor]))
            ended[actor] = done[row]
            if len(unroll) == steps + 1:
                ready.append(unroll)
                unrolls[actor] = [unroll[-1]]
        if len(ready) >= batch:
            learn(ready[:batch], forward, optimiser, parameters)
            ready = ready[batch:]
    print(samples / (time.perf_counter() - start))


def learn(unrolls: list[list[tuple]], forward, optimiser, parameters) -> None:
    columns = [[list(column) for column in zip(*unroll, strict=True)] for unroll in unrolls]
    pixels = torch.from_numpy(np.stack([np.stack(column[0]) for column in columns]))
    actions = torch.stack([torch.stack(column[1][:-1]) for column in columns])
    behaviour = torch.stack([torch.stack(column[2][:-1]) for column in columns])
    rewards = torch.tensor(np.array([column[3][1:] for column in columns])).clamp(-1, 1)
    discounts = 0.99 * ~torch.tensor(np.array([column[4][1:] for column in columns]))
    weight = (~torch.tensor(np.array([column[5][1:] for column in columns]))).float()
    logits, values = forward(pixels.flatten(0, 1))
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
    nn.utils.clip_grad_norm_(parameters, 40.0)
    optimiser.step()


if __name__ == "__main__":
    main()
