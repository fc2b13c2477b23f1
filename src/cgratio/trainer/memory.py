"""Keeps freed memory for the next update instead of giving it back to the system."""

from __future__ import annotations

import contextlib
import ctypes

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
