"""V-trace targets (Espeholt et al. 2018, "IMPALA", arXiv 1802.01561, section 4.1)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class VTrace(NamedTuple):
    """Targets of one batch of unrolls, each of shape [batch, time], without gradient.

    Attributes:
        values: the value targets v_s.
        advantages: of the policy gradient, rho_s (r_s + discount_s v_{s+1} - V(x_s)).
    """

    values: Tensor
    advantages: Tensor


@torch.no_grad()
def vtrace(
    *,
    log_rhos: Tensor,
    discounts: Tensor,
    rewards: Tensor,
    values: Tensor,
    bootstrap_value: Tensor,
    rho_clip: float = 1.0,
    c_clip: float = 1.0,
) -> VTrace:
    """Computes V-trace targets by the recursion of the paper's remark 1.

    With delta_s = rho_s (r_s + discount_s V(x_{s+1}) - V(x_s)),
    v_s - V(x_s) = delta_s + discount_s c_s (v_{s+1} - V(x_{s+1})).

    Args:
        log_rhos: log pi(a|x) - log mu(a|x), [batch, time].
        discounts: gamma, or 0 where the episode ended with the transition, [batch, time].
        rewards: [batch, time].
        values: V(x_s) of the learner, [batch, time].
        bootstrap_value: V(x_T) after the last transition, [batch].
        rho_clip: truncation level of rho, in the targets and in the policy gradient.
        c_clip: truncation level of c.
    """
    rhos = log_rhos.exp()
    clipped_rhos = rhos.clamp(max=rho_clip)
    cs = rhos.clamp(max=c_clip)
    next_values = torch.cat([values[:, 1:], bootstrap_value[:, None]], dim=1)
    deltas = clipped_rhos * (rewards + discounts * next_values - values)
    traces = discounts * cs
    correction = torch.zeros_like(bootstrap_value)
    corrections = []
    for delta, trace in zip(reversed(deltas.unbind(1)), reversed(traces.unbind(1)), strict=True):
        correction = delta + trace * correction
        corrections.append(correction)
    targets = values + torch.stack(corrections[::-1], dim=1)
    next_targets = torch.cat([targets[:, 1:], bootstrap_value[:, None]], dim=1)
    advantages = clipped_rhos * (rewards + discounts * next_targets - values)
    return VTrace(values=targets, advantages=advantages)
