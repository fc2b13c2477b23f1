"""Loaded by a peer's interpreter at its start: envpool's former name for what is now `gymnasium`.

envpool 1.x no longer makes `env_type="gym"`; where gym was 0.26 or newer, that was the same interface.
"""

from __future__ import annotations

from typing import Any

import envpool

_make = envpool.make


def _make_with_gym(task: str, env_type: str, **options: Any) -> Any:
    return _make(task, env_type="gymnasium" if env_type == "gym" else env_type, **options)


envpool.make = _make_with_gym
