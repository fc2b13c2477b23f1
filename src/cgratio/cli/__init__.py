"""The command line: each command in a file of its own, which parses, calls and prints."""

from __future__ import annotations

import io
import signal
import sys
from typing import Annotated

import typer

from cgratio import __version__
from cgratio.cli.analyze import analyze
from cgratio.cli.doctor import doctor
from cgratio.cli.report import report
from cgratio.cli.sweep import sweep
from cgratio.cli.train import train

app = typer.Typer(
    name="cgratio",
    help="Measures how many CPU threads an RL training job needs for each GPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(sweep)
app.command()(analyze)
app.command()(report)
app.command()(doctor)
app.command()(train)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - the option's value
    if asked:
        typer.echo(f"cgratio {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measures how many CPU threads an RL training job needs for each GPU."""


def main() -> None:
    """Runs the command line; the exit codes are those of docs/exit-codes.md."""
    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name that the terminal's encoding does not have must not end a command.
            stream.reconfigure(errors="backslashreplace")
    app()


def _end(number: int, _frame: object) -> None:
    # As a shell reports it: 130 for Ctrl-C, 143 for SIGTERM. Whoever holds something cleans up on the way.
    sys.exit(128 + number)
