"""Sample Factory's APPO on envpool, its own example for Atari."""

from peers.peer import Peer

PEER = Peer(
    name="Sample Factory 2.1.1 APPO on envpool",
    folder="sample_factory",
    setting="async, 1 worker x 64 envs, rollout 32, batch 1024, 1 epoch, fp32, pools of 1 thread",
    requirements=("gymnasium==0.29.1", "numpy==1.26.4", "sample-factory==2.1.1"),
    arguments=lambda _: [
        "-m",
        "sf_examples.envpool.atari.train_envpool_atari",
        "--env=atari_pong",
        "--device=cpu",
        "--async_rl=True",
        "--num_workers=1",
        "--env_agents=64",
        "--rollout=32",
        "--batch_size=1024",
        "--num_batches_per_epoch=1",
        "--num_epochs=1",
        "--with_vtrace=False",  # with it its learner crashes, and it then waits for ever
        "--with_wandb=False",
        "--train_dir=runs",
        "--train_for_env_steps=1000000000",
        "--restart_behavior=overwrite",
    ],
    shims=("new_gym_shim",),
    # Several processes compute at once; with a pool of all CPUs in each they hinder each other.
    environment={"OMP_NUM_THREADS": "1"},
    report=r"Total num frames.* Samples: (\d+)\.",  # agent steps, each of four frames
)
