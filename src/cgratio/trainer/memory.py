"""Memory: what a run needs at least, and keeping what was freed for the next update."""

from __future__ import annotations

import contextlib
import ctypes
import math

import psutil

from cgratio.trainer.config import TrainerError
from cgratio.trainer.environments import EnvironmentFacts
from cgratio.trainer.unrolls import UnrollLayout

# Of mallopt(3), as malloc.h of glibc numbers them.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_LARGEST_IN_HEAP = 32 << 20  # the highest threshold that glibc takes on 64 bits


def keep_freed_memory() -> None:
    """Tells the C library to reuse memory that was freed.

    By default it maps every large tensor anew, and the system fills it with zeros page by page: a quarter of
    the processor time of an update. Memory then stays at its peak, which the next update reaches anyway. A C
    library that knows no `mallopt` is left as it is.
    """
    with contextlib.suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_IN_HEAP)
        mallopt(_M_TRIM_THRESHOLD, 1 << 30)
        mallopt(_M_TOP_PAD, 64 << 20)


def refuse_what_does_not_fit(layout: UnrollLayout, *, slots: int, facts: EnvironmentFacts) -> None:
    """Looks whether the observations of all unrolls fit into the memory that is free now.

    Environments, networks and batches come on top, so what passes may still be too much.

    Raises:
        TrainerError: they do not fit.
    """
    needed = slots * (layout.length + 1) * math.prod(facts.shape) * facts.dtype.itemsize
    free = psutil.virtual_memory().available
    if needed > free:
        raise TrainerError(
            f"the unrolls need {needed / 2**30:,.1f} GiB and {free / 2**30:,.1f} GiB of memory are free; use "
            "fewer actors, shorter unrolls, a smaller batch or fewer replay_sequences"
        )
