"""JAX, Flax and Optax with the names that they had in 2023, and short scans unrolled.

XLA compiles a convolution inside a loop to slow code on a CPU: with the loop over an update's minibatches
unrolled, an update takes a fraction of the time.
"""

from __future__ import annotations

from typing import Any

import flax
import jax
import optax
from optax import tree_utils
from optax._src import alias, base, transform

_SHORT = 8  # steps; unrolling a loop over the time of an unroll would only take long to compile

_scan = jax.lax.scan
_dataclass = flax.struct.dataclass


def _unrolled_scan(
    step: Any, init: Any, xs: Any = None, length: int | None = None, **options: Any
) -> tuple[Any, Any]:
    steps = length if xs is None else len(jax.tree_util.tree_leaves(xs)[0])
    if steps and steps <= _SHORT:
        options["unroll"] = steps
    return _scan(step, init, xs, length, **options)


def _dataclass_that_contains_nothing(cls: type, **options: Any) -> Any:
    # Flax asks parameters whether they contain a certain key; at that time they need not be a mapping.
    cls.__contains__ = lambda _self, _key: False  # type: ignore[attr-defined]
    return _dataclass(cls, **options)


jax.lax.scan = _unrolled_scan
jax.tree_map = jax.tree_util.tree_map
flax.struct.dataclass = _dataclass_that_contains_nothing
optax.update_moment_per_elem_norm = tree_utils.tree_update_moment_per_elem_norm
alias.ScalarOrSchedule = base.ScalarOrSchedule
alias._scale_by_learning_rate = transform.scale_by_learning_rate
