"""Adam by torch's functional call.

`torch.optim.Adam` computes the same but loads the compiler (torch._dynamo) when it is made: 1.5 s in every
trial of a sweep.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """Kingma and Ba 2015 (arXiv 1412.6980), algorithm 1, fused into one kernel."""

    def __init__(self, parameters: Iterable[Tensor], *, learning_rate: float, epsilon: float = 1e-5) -> None:
        self._parameters = list(parameters)
        self._learning_rate = learning_rate
        self._epsilon = epsilon
        self._means = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._steps = [torch.zeros((), device=parameter.device) for parameter in self._parameters]

    def step(self) -> None:
        """Applies the gradients that the parameters hold, and drops them."""
        gradients = []
        for parameter in self._parameters:
            assert parameter.grad is not None, "every parameter takes part in the loss"
            gradients.append(parameter.grad)
            parameter.grad = None
        with torch.no_grad():
            adam(
                self._parameters,
                gradients,
                self._means,
                self._squares,
                max_exp_avg_sqs=[],
                state_steps=self._steps,
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self._learning_rate,
                weight_decay=0.0,
                eps=self._epsilon,
                maximize=False,
            )
