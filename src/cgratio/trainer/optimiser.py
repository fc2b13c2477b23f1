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
        self._parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self._learning_rate = learning_rate
        self._epsilon = epsilon
        self._means = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._steps = [torch.zeros((), device=parameter.device) for parameter in self._parameters]

    def step(self) -> None:
        """Applies the gradients that the parameters hold, and drops them."""
        gradients = []
        for parameter in self._parameters:
            # A part of one's own network may take no part in the loss: it then stays as it is.
            gradients.append(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
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
