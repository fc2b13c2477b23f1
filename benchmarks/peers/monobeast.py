"""TorchBeast's MonoBeast, IMPALA with an actor in each process."""

import os

from peers.peer import Checkout, Peer

_ACTORS = len(os.sched_getaffinity(0)) + 1

PEER = Peer(
    name="TorchBeast MonoBeast (IMPALA)",
    folder="monobeast",
    setting=f"{_ACTORS} actors of one env, T=20, B=8, 1 learner thread, fp32, Atari from ale-py",
    requirements=(
        "ale-py==0.12.1",
        "gitpython==3.2.1",
        "gym==0.23.1",
        "numpy==1.26.4",
        "opencv-python-headless==4.11.0.86",
    ),
    checkout=Checkout(
        url="https://github.com/facebookresearch/torchbeast",
        commit="0af07b051a2176a8f9fd20c36891ba2bba6bae68",
        paths=("/torchbeast/",),
    ),
    arguments=lambda _: [
        "-m",
        "torchbeast.monobeast",
        "--env=PongNoFrameskip-v4",
        "--disable_cuda",
        "--disable_checkpoint",
        "--savedir=logs",
        f"--num_actors={_ACTORS}",
        "--num_learner_threads=1",
        "--batch_size=8",
        "--unroll_length=20",
        "--num_buffers=24",
        "--total_steps=1000000000",
    ],
    shims=("old_atari_shim",),
    path=lambda source: [source],
    report=r"Steps (\d+) @",
)
