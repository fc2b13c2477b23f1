import sys
from functools import partial
from pathlib import Path

import pytest

from cgratio.launch.local import LocalLauncher
from cgratio.machine.host import read_host
from cgratio.sweep.host import SweepHost
from cgratio.sweep.plan import make_plan
from cgratio.sweep.reading import load_spec

QUICK = """
name: quick
axes: {environment: CartPole-v1, network: mlp, device: cpu, actors: [1, 2, 4], actor_cpus: 1, device_cpus: 1,
  pinning: none}
trial: {window_s: 0.1, warmup_min_s: 0, warmup_max_s: 0.2, max_s: 0.8, setup_max_s: 20, silence_max_s: 1}
replicates: 2
"""


@pytest.fixture
def quick_plan(tmp_path):
    """A plan of six short trials, and what the stand-in workload does at 4 actors."""

    def make(behaviour=0.5, *settings):
        path = tmp_path / "quick.yaml"
        path.write_text(QUICK)
        spec = load_spec(path, overrides=(f"trainer.learning_rate={behaviour}", *settings))
        return make_plan(spec, SweepHost(host=read_host(), software={"cgratio": "test"}))

    return make


@pytest.fixture
def stand_in():
    """A launcher of trials whose workload is the stand-in."""
    return partial(LocalLauncher, command=[sys.executable, str(Path(__file__).with_name("trial.py"))])
