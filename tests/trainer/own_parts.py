"""What a user of the trainer might bring along."""

import torch


class Own(torch.nn.Module):
    """A body that says nothing about itself."""

    def __init__(self, shape):
        super().__init__()
        self.layer = torch.nn.Linear(shape[0], 7)

    def forward(self, observations):
        return self.layer(observations.to(self.layer.weight.dtype))


class Wrong(Own):
    def forward(self, observations):
        return super().forward(observations).sum()


def no_body(shape):
    return shape


class Natural(torch.nn.Module):
    """Written with no thought of precisions: it computes in float32 before its first layer."""

    features = 16

    def __init__(self, shape):
        super().__init__()
        self.layer = torch.nn.Linear(shape[0], 16)

    def forward(self, observations):
        return self.layer(observations.float() / 255)


class Frozen(Own):
    """With a layer that is not to be trained, and one that nothing uses."""

    def __init__(self, shape):
        super().__init__(shape)
        self.still = torch.nn.Linear(shape[0], shape[0]).requires_grad_(requires_grad=False)
        self.unused = torch.nn.Linear(3, 3)

    def forward(self, observations):
        return super().forward(self.still(observations.to(self.still.weight.dtype)))
