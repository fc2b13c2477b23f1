"""CleanRL's PPO on envpool, ppo_atari_envpool.py as published."""

from peers.peer import Checkout, Peer

_ENVIRONMENTS, _STEPS = 32, 32

PEER = Peer(
    name="CleanRL PPO on envpool",
    folder="cleanrl",
    setting=f"{_ENVIRONMENTS} envs x {_STEPS} steps, 1 epoch, fp32",
    requirements=("gym==0.23.1", "numpy==1.26.4", "tensorboard==2.21.0", "tyro==1.0.17"),
    checkout=Checkout(
        url="https://github.com/vwxyzjn/cleanrl",
        commit="fe8d8a03c41a7ef5b523e2e354bd01c363e786bb",
        paths=("/cleanrl/ppo_atari_envpool.py",),
    ),
    arguments=lambda source: [
        str(source / "cleanrl" / "ppo_atari_envpool.py"),
        "--no-cuda",
        "--env-id=Pong-v5",
        f"--num-envs={_ENVIRONMENTS}",
        f"--num-steps={_STEPS}",
        "--update-epochs=1",
    ],
    shims=("old_gym_shim",),
    # One such line after each update; the rate in it is a mean since the start, so lines are counted instead.
    report=r"^SPS: ",
    samples_each=_ENVIRONMENTS * _STEPS,
)
