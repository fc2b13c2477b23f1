"""What every command prints with: names made harmless, no column lost, quiet when nobody reads on."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Exit codes, see docs/exit-codes.md.
BAD_INPUT = 2
INCONCLUSIVE = 3
INVALID = 4
NO_READER = 128 + signal.SIGPIPE  # as a shell reports a program that SIGPIPE ended

_WIDE = 100_000  # columns, where no terminal sets a limit
_UNBROKEN = 16  # words up to this long are not broken in a table
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, formats that reorder text, and line ends


def guard_streams() -> None:
    """Makes standard output and error safe to write any name to, whoever reads them."""
    sys.stdout, sys.stderr = _guarded(sys.stdout, 1), _guarded(sys.stderr, 2)


def _guarded(stream: Any, number: int) -> Any:
    if stream is None:  # it was closed before we began; the number must not be given to another file
        return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(_Descriptor(number, "wb", closefd=False)),
        encoding=stream.encoding,
        errors="backslashreplace",  # a name that the encoding does not have must not end a command
        line_buffering=stream.line_buffering or number == 2,
        write_through=stream.write_through,
    )


class _Descriptor(io.FileIO):
    """A standard stream that may be closed by its reader, or be on a full disk."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            # What is buffered still has nowhere to go, and is not to be complained of once more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):
                sys.exit(NO_READER)
            if self.fileno() == 1:
                complain(f"standard output: {error.strerror}")
            sys.exit(BAD_INPUT)


def plain(text: object) -> str:
    """Text for a terminal: what would move its cursor, colour it or reorder it is shown as an escape."""
    return "".join(
        ascii(character)[1:-1] if unicodedata.category(character) in _UNPRINTABLE else character
        for character in str(text)
    )


def say(text: str) -> None:
    """Prints one line, unbroken: a path in it can be copied."""
    sys.stdout.write(f"{plain(text)}\n")
    sys.stdout.flush()


def tell(text: str, *, style: str = "") -> None:
    """Prints a sentence, broken between words where the terminal ends."""
    console().print(Text(plain(text), style=style))


def say_json(value: Mapping[str, Any]) -> None:
    """Prints strict JSON of printable ASCII, which no terminal's encoding and no name can break."""
    text = json.dumps(value, indent=2, allow_nan=False)
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")


def complain(text: str, *, what: str = "error") -> None:
    """Prints one line on standard error."""
    sys.stderr.write(f"{what}: {plain(text)}\n")


def refuse(text: str) -> NoReturn:
    """Ends the command for bad usage or bad input, with one line of what is wrong."""
    complain(text)
    raise typer.Exit(BAD_INPUT)


def console() -> Console:
    """A console as wide as the terminal, as COLUMNS says, or without a limit where there is neither."""
    size = shutil.get_terminal_size(fallback=(_WIDE, 25))
    return Console(highlight=False, width=min(size.columns, _WIDE), height=size.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Rows under headers.

    Attributes:
        title: of the whole.
        headers: of the columns.
        rows: of cells; a line break within a cell stays one.
        spaced: whether rows are set apart, as cells of several lines need it.
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    spaced: bool = False


def show(listing: Listing) -> None:
    """Prints a listing as a table, or where that is too wide, each row as a block of `header: cell`."""
    screen = console()
    headers = [plain(header) for header in listing.headers]
    rows = [[_cell(cell) for cell in row] for row in listing.rows]
    widths = _widths(headers, rows, room=screen.width)
    screen.print()
    screen.print(Text(plain(listing.title), style="italic"))
    if widths is None:
        for row in rows:
            screen.print()
            for header, cell in zip(headers, row, strict=True):
                screen.print(Text(f"{header}: {cell}"))
        screen.print()
        return
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_lines=listing.spaced)
    for header, width in zip(headers, widths, strict=True):
        # Fold: the default ends a long cell in a character that ASCII does not have.
        table.add_column(Text(header), width=width, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    screen.print(table)


def _cell(text: str) -> str:
    return "\n".join(plain(line) for line in text.split("\n"))


def _widths(headers: Sequence[str], rows: Sequence[Sequence[str]], *, room: int) -> list[int] | None:
    """Widths of the columns of a table; None if it needs more room than there is."""
    columns = list(zip(headers, *rows, strict=True))
    most = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    widths = []
    for header, *cells in columns:
        words = [min(cell_len(word), _UNBROKEN) for cell in cells for word in cell.split()]
        widths.append(max([1, *words, *map(cell_len, header.split())]))
    spare = room - sum(widths) - len(headers) - 1  # a column of space around each
    if spare < 0:
        return None
    # What is nearly whole is made whole first; a column of long texts takes what is left.
    for index in sorted(range(len(most)), key=lambda index: most[index] - widths[index]):
        grown = min(most[index], widths[index] + spare)
        spare -= grown - widths[index]
        widths[index] = grown
    return widths
