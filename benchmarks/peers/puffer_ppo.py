"""PufferLib's PPO, its demo for Atari.

Newer versions fetch sources from elsewhere while they are built, which not every host can.
"""

import os
import shutil
from pathlib import Path

from peers.peer import Checkout, Peer

_WORKERS = len(os.sched_getaffinity(0))
_BATCH = 1024  # in the demo's settings for Atari


def _with_settings(source: Path, work: Path) -> None:
    shutil.copy(source / "config.yaml", work)  # it reads them from the folder in which it runs


PEER = Peer(
    name="PufferLib 1.0 PPO",
    folder="puffer",
    setting=f"{_WORKERS} workers, 32 envs, batch {_BATCH}, 1 epoch, fp32, torch 1 thread, Atari from ale-py",
    requirements=(
        "ale-py==0.10.2",
        "cython==3.3.1",
        "gym==0.23.1",
        "gymnasium==0.29.1",
        "numpy==1.26.4",
        "opencv-python-headless==4.11.0.86",
        "pandas==2.3.3",
        "pettingzoo==1.24.1",
        "rich-argparse==1.8.0",
        "setuptools",
        "shimmy==1.3.0",
        "stable-baselines3==2.1.0",
        "wheel",
    ),
    unbuilt=("pufferlib==1.0.1",),  # it asks for exact versions that no longer install
    checkout=Checkout(
        url="https://github.com/PufferAI/PufferLib",
        commit="91460f7b14edd1b43d6b19150cef5c51b80cbb7f",
        paths=("/c_gae.pyx", "/clean_pufferl.py", "/config.yaml", "/demo.py"),
    ),
    arguments=lambda source: [
        str(source / "demo.py"),
        "--env=pong",
        "--mode=train",
        "--vec=multiprocessing",
        "--train.device=cpu",
        "--train.update-epochs=1",
        "--train.num-envs=32",
        f"--train.num-workers={_WORKERS}",
    ],
    prepare=_with_settings,
    environment={"OMP_NUM_THREADS": "1"},
    report=r"Epoch\s+(\d+)",  # updates so far; its count of steps is rounded
    samples_each=_BATCH,
)
