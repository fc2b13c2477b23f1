"""Cleanba's IMPALA in JAX on envpool, with the network that all others have."""

import re
from pathlib import Path

from peers.peer import Checkout, Peer

_SCRIPT = "cleanba_impala.py"

# Its own network is the deep ResNet, and no setting changes its kind.
_NATURE_CNN = '''
class Network(nn.Module):
    """The network of Mnih et al. 2015."""

    channels: Sequence[int] = ()
    hiddens: Sequence[int] = ()

    @nn.compact
    def __call__(self, x):
        x = jnp.transpose(x, (0, 2, 3, 1)) / 255.0
        for features, size, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            x = nn.relu(nn.Conv(features, (size, size), stride, padding="VALID")(x))
        return nn.relu(nn.Dense(512)(x.reshape((x.shape[0], -1))))


'''


def _with_nature_cnn(source: Path, work: Path) -> None:
    """Writes the script once more, with our network defined after its own and so in the place of it."""
    script = (source / "cleanba" / _SCRIPT).read_text()
    changed, places = re.subn(r"^class Critic\b", f"{_NATURE_CNN}class Critic", script, flags=re.MULTILINE)
    assert places == 1, "the script is another one than was pinned"
    (work / _SCRIPT).write_text(changed)


PEER = Peer(
    name="Cleanba IMPALA (JAX) on envpool",
    folder="cleanba",
    setting="1 actor thread x 64 envs, T=20, B=32, fp32, its network replaced, its scan unrolled",
    requirements=(
        "chex==0.1.90",
        "flax==0.10.6",
        "gym==0.23.1",
        "jax==0.6.2",
        "jaxlib==0.6.2",
        "numpy==1.26.4",
        "optax==0.2.5",
        "rlax==0.1.7",
        "tensorboardx==2.6.5",
        "tyro==1.0.17",
    ),
    checkout=Checkout(
        url="https://github.com/vwxyzjn/cleanba",
        commit="d1f8979c33e4e1c3d4e67f460afcebb42b6889d4",
        paths=(f"/cleanba/{_SCRIPT}",),
    ),
    arguments=lambda _: [
        _SCRIPT,
        "--env-id=Pong-v5",
        "--local-num-envs=64",
        "--num-actor-threads=1",
        "--num-steps=20",
        "--num-minibatches=2",
        "--log-frequency=1",
    ],
    prepare=_with_nature_cnn,
    shims=("old_gym_shim", "jax_shim"),
    environment={"JAX_PLATFORMS": "cpu"},
    report=r"^(\d+) actor_policy_version=",
)
