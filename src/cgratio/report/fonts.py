r"""Which fonts show a text, and what stands in for a character that no installed font has.

A sweep may be called anything (`cost $5 vs $6`, `訓練`). Its name must be readable in the report, and a PDF
must embed what it uses. So the report looks for the characters that its own typeface lacks among the fonts
of the machine, and writes a code point (`\u8a13`) where nothing has them.
"""

from __future__ import annotations

import logging
import struct
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

MAIN = "DejaVu Sans"  # comes with matplotlib, so the report looks the same on every machine
WEIGHTS = ("normal", "bold")

# Families for wide scripts, tried in this order before the rest of the machine's fonts.
PREFERRED = ("Noto Sans", "Source Han Sans", "WenQuanYi", "IPA", "Takao", "Droid Sans Fallback", "Nanum")


@dataclass(frozen=True, slots=True, kw_only=True)
class Typeface:
    """The fonts of one report.

    Attributes:
        families: font families in the order in which a character is looked for.
        outlined: characters that only a font with PostScript outlines has. Such fonts cannot be embedded
            as Type 42, so a text with one of these is drawn as outlines.
        escapes: what stands in for a character that no font shows, for `str.translate`.
    """

    families: tuple[str, ...] = (MAIN,)
    outlined: frozenset[str] = frozenset()
    escapes: Mapping[int, str]

    def printable(self, text: str) -> str:
        """The text with every character replaced that cannot be shown."""
        return text.translate(self.escapes)


@contextmanager
def quiet_search() -> Iterator[None]:
    """Keeps matplotlib from telling the terminal that a family has no bold: the regular one will do."""
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def choose(characters: Iterable[str], *, families: Iterable[str] | None = None) -> Typeface:
    """Finds fonts for a set of characters.

    Args:
        characters: everything that the report will print.
        families: where to look when the main typeface lacks a character; default: all installed fonts.
    """
    shown = {character for character in characters if not _is_hidden(character)}
    escapes = {ord(character): escape(character) for character in set(characters) - shown}
    escapes |= {ord(space): " " for space in "\n\r\t\v\f\u2028\u2029" if space in characters}
    wanted = {character for character in shown if not _has(MAIN, character)}
    chosen: list[str] = [MAIN]
    outlined: set[str] = set()
    with quiet_search():
        for family in _candidates(families) if wanted else ():
            if found := {character for character in wanted if _has(family, character)}:
                chosen.append(family)
                outlined |= found if _has_postscript_outlines(family) else set()
                wanted -= found
            if not wanted:
                break
    escapes |= {ord(character): escape(character) for character in wanted}
    return Typeface(families=tuple(chosen), outlined=frozenset(outlined), escapes=escapes)


def escape(character: str) -> str:
    r"""Writes a character as its code point, as Python would: `\x1b`, `\u8a13`, `\U0001f600`."""
    return character.encode("unicode_escape").decode("ascii")


def _is_hidden(character: str) -> bool:
    # Controls, formats (a right-to-left override can make a name read as another one), surrogates,
    # private use and unassigned: no font shows these for what they are.
    return unicodedata.category(character).startswith("C")


def _candidates(families: Iterable[str] | None) -> list[str]:
    names = {font.name for font in font_manager.fontManager.ttflist} if families is None else set(families)
    # "Last resort" fonts have a box with a name for every character; that box is not the character.
    names -= {MAIN} | {name for name in names if name.lower().replace(" ", "").startswith("lastresort")}

    def rank(name: str) -> tuple[bool, int, str]:
        preferred = [place for place, prefix in enumerate(PREFERRED) if name.startswith(prefix)]
        # A font that can be embedded goes first: its text can be searched and copied.
        return _has_postscript_outlines(name), min(preferred, default=len(PREFERRED)), name

    return sorted(names, key=rank)


def _faces(family: str) -> list[FT2Font]:
    faces = []
    for weight in WEIGHTS:
        properties = font_manager.FontProperties(family=[family], weight=weight)
        faces.append(font_manager.get_font(font_manager.findfont(properties)))
    return faces


def _has(family: str, character: str) -> bool:
    """Whether every weight of a family that the report uses has the character."""
    try:
        return all(face.scalable and face.get_char_index(ord(character)) for face in _faces(family))
    except (OSError, RuntimeError, ValueError):  # a damaged or vanished font file is no font
        return False


def _has_postscript_outlines(family: str) -> bool:
    path = font_manager.findfont(font_manager.FontProperties(family=[family]))
    try:
        with Path(path).open("rb") as file:
            head = file.read(16)
            if head[:4] == b"ttcf":  # a collection: look at its first font
                file.seek(struct.unpack(">I", head[12:16])[0])
                head = file.read(4)
    except (OSError, struct.error):
        return False
    return head[:4] == b"OTTO"
