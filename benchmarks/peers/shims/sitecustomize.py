"""Python imports this at its start, in each process of a peer; it loads what that peer needs to run today.

BENCHMARK_SHIMS names the modules of this folder, separated by commas. A peer's own code is never changed by
them, only what it imports and finds moved since it was written.
"""

from __future__ import annotations

import importlib
import os

for name in os.environ.get("BENCHMARK_SHIMS", "").split(","):
    if name:
        importlib.import_module(name)
