"""Versions of the software that a measurement rests on."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("cgratio", "torch", "envpool", "numpy", "pandas", "pyarrow", "scipy", "nvidia-ml-py", "psutil")


def software_versions() -> dict[str, str]:
    """Version by package; one that is not installed is left out."""
    found = {"python": sys.version.split()[0]}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
