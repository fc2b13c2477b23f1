"""The command line: each command in a file of its own, which parses, calls and prints."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from cgratio import __version__
from cgratio.cli.analyze import analyze
from cgratio.cli.doctor import doctor
from cgratio.cli.output import BAD_INPUT, complain, guard_streams, say
from cgratio.cli.report import report
from cgratio.cli.sweep import sweep
from cgratio.cli.train import train

app = typer.Typer(
    name="cgratio",
    help="Measures how many CPU threads an RL training job needs for each GPU.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(sweep)
app.command()(analyze)
app.command()(report)
app.command()(doctor)
app.command()(train)

# What typer raises for any bad usage; it exports one kind of it only.
_UsageError: type[typer.BadParameter] = typer.BadParameter.__mro__[1]


def _print_version(asked: bool) -> None:  # noqa: FBT001 - the option's value
    if asked:
        say(f"cgratio {__version__}")
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
    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    guard_streams()
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except _UsageError as error:
        code = _explain(error)
    except SystemExit as ended:  # a signal, or nobody reads on
        code = ended.code
    sys.stdout.flush()  # here, where a reader that has left still decides the exit code
    sys.exit(code)


def _explain(error: typer.BadParameter) -> int:
    """Says in one line what is wrong with a command line; typer itself draws a box."""
    command = error.ctx.command_path if error.ctx else "cgratio"
    message = " ".join(error.format_message().split()).rstrip(".")
    complain(f"{message}; see {command} --help")
    return BAD_INPUT


def end(number: int, _frame: object) -> None:
    """Ends the program for a signal; whoever holds something cleans up on the way."""
    # As a shell reports it: 130 for Ctrl-C, 143 for SIGTERM.
    sys.exit(128 + number)
