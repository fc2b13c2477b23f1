"""envpool with the interface of gym 0.26.

envpool 1.x no longer makes `env_type="gym"`; its `gymnasium` is the same interface. What gymnasium below 1.0
sets in a vector environment's constructor is set here, since envpool does not call that.
"""

from __future__ import annotations

from typing import Any

import envpool

_make = envpool.make


def _make_with_gym(task: str, env_type: str, **options: Any) -> Any:
    if env_type != "gym":
        return _make(task, env_type=env_type, **options)
    pool = _make(task, env_type="gymnasium", **options)
    pool.closed, pool.viewer = False, None
    return pool


envpool.make = _make_with_gym
