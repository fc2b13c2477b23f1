"""What stands over every table: the host, the versions and the day."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

from rich.console import Console
from rich.table import Table

from cgratio.machine.fingerprint import host_fingerprint

WIDTH = 120  # of a printed table, whatever the terminal is


def cpus() -> list[int]:
    """The CPUs that this process may use."""
    return sorted(os.sched_getaffinity(0))


def facts() -> str:
    """The host, the versions and the time."""
    host = host_fingerprint()
    memory = f"{host.memory_bytes / 2**30:.0f} GiB" if host.memory_bytes else "memory unknown"
    machine = "virtual machine" if host.virtualised else "machine"
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "envpool", "numpy"))
    return (
        f"{host.cpu_model or 'CPU unknown'}, {len(cpus())} CPUs of {host.cores} cores, {memory}, {machine}; "
        f"Python {platform.python_version()}, {packages}; {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    )


def table(title: str, *columns: str) -> Table:
    """An empty table; all columns but the first are numbers."""
    made = Table(title=title)
    for index, column in enumerate(columns):
        made.add_column(column, justify="right" if index else "left")
    return made


def show(made: Table) -> None:
    """Prints a table with its title over it and the host under it, both as wide as a line may be."""
    console = Console(width=WIDTH, highlight=False)
    title, made.title = made.title, None
    console.print(f"\n[bold]{title}[/bold]", made, facts(), sep="\n")
