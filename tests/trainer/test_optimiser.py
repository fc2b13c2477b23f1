import torch

from cgratio.trainer.optimiser import Adam


def test_it_is_torchs_adam():
    torch.manual_seed(0)
    start = [torch.randn(5, 3), torch.randn(4)]
    mine = [parameter.clone().requires_grad_() for parameter in start]
    theirs = [parameter.clone().requires_grad_() for parameter in start]
    one, other = Adam(mine, learning_rate=0.01), torch.optim.Adam(theirs, lr=0.01, eps=1e-5)
    for _ in range(20):
        for parameters in (mine, theirs):
            sum((parameter.sin() ** 2).sum() for parameter in parameters).backward()
        one.step()
        other.step()
        other.zero_grad()
    for parameter, expected in zip(mine, theirs, strict=True):
        torch.testing.assert_close(parameter, expected)
