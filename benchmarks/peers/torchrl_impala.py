"""TorchRL's IMPALA on one node, from its implementations of published algorithms."""

import os

from peers.peer import STAND_INS, Checkout, Peer

_WORKERS = len(os.sched_getaffinity(0))

PEER = Peer(
    name="TorchRL 0.14.1 IMPALA",
    folder="torchrl",
    setting=f"{_WORKERS} workers of one env, T=20, B=32, fp32, Atari from ale-py",
    requirements=(
        "ale-py==0.12.1",
        "hydra-core==1.3.8",
        "opencv-python-headless==5.0.0.93",
        "torchrl==0.14.1",
        "tqdm==4.70.1",
    ),
    checkout=Checkout(
        url="https://github.com/pytorch/rl",
        commit="ae9719f17b1517af5c2523a36c4616f003ee55cf",
        paths=("/sota-implementations/impala/",),
    ),
    arguments=lambda source: [
        str(source / "sota-implementations" / "impala" / "impala_single_node.py"),
        "logger.backend=",
        "env.env_name=PongNoFrameskip-v4",
        f"collector.num_workers={_WORKERS}",
    ],
    path=lambda _: [STAND_INS],
    report=r"\s(\d+)/\d+ \[",  # its progress bar counts agent steps
)
