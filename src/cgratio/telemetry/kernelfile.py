"""Kernel files that are read over and over: opened once, then read from the start with one system call."""

import os
from pathlib import Path

_PAGE = 4096
_CHUNK = 1 << 16


class KernelFile:
    """An open sysfs or procfs file. `pread` at 0 makes the kernel format the value anew.

    Raises:
        OSError: If the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        """The content now, of a file of at most a page, as all those of sysfs are.

        Raises:
            OSError: If the file cannot be read.
        """
        return os.pread(self._fd, _PAGE, 0)

    def read_whole(self) -> bytes:
        """The content now, of a file of any length: `/proc/cpuinfo` comes a page at a time.

        Raises:
            OSError: If the file cannot be read.
        """
        parts: list[bytes] = []
        size = 0
        while part := os.pread(self._fd, _CHUNK, size):
            parts.append(part)
            size += len(part)
        return b"".join(parts)

    def read_int(self) -> int:
        """The content as an integer.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is not an integer.
        """
        return int(self.read())

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


def open_reason(error: Exception, *, path: Path) -> str:
    """Why a kernel file cannot be read, in words."""
    if isinstance(error, OSError):
        return f"{path}: {(error.strerror or str(error)).lower()}"
    return f"{path}: not a number"
