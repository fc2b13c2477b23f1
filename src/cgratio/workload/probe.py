"""Says what the built-in trainer can run here: `python -m cgratio.workload.probe`, JSON in and out."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The answer.

    Attributes:
        cuda: whether torch can compute on a GPU. cuda_reason: why not.
        errors: what cannot run: `environment` and `network` (empty for any), and a `message` in a sentence.
    """

    cuda: bool
    cuda_reason: str | None = None
    errors: list[dict[str, str]] = field(default_factory=list)


def probe(*, pairs: list[tuple[str, str]]) -> Probe:
    """Makes one instance of each environment and builds on it the networks that are paired with it."""
    import torch

    from cgratio.trainer import networks as trainer_networks
    from cgratio.trainer.config import TrainerConfig, TrainerError
    from cgratio.trainer.environments import describe

    errors = []
    for environment in dict.fromkeys(environment for environment, _ in pairs):
        try:
            facts = describe(environment)
        except (TrainerError, ImportError) as error:  # some families want libraries of the host
            errors.append({"environment": environment, "network": "", "message": str(error)})
            continue
        for network in (network for paired, network in pairs if paired == environment):
            try:
                config = TrainerConfig(environment=environment, network=network)
                trainer_networks.build(config, facts, heads=trainer_networks.ActorCritic)
            except TrainerError as error:
                errors.append({"environment": environment, "network": network, "message": str(error)})
    cuda = torch.cuda.is_available()
    reason = None
    if not cuda:
        reason = "torch sees no GPU" if torch.version.cuda else "this build of torch has no CUDA"
    return Probe(cuda=cuda, cuda_reason=reason, errors=errors)


if __name__ == "__main__":
    question = json.load(sys.stdin)
    print(json.dumps(dataclasses.asdict(probe(**question))))  # noqa: T201 - the answer
