"""The whole report: its pages in order, written as one PDF file that appears whole or not at all."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal
from matplotlib.text import Text

from cgratio.analysis.facts import Analysis
from cgratio.report import (
    actors_page,
    balance_page,
    fonts,
    methods_page,
    ratio_page,
    share_page,
    stages_page,
    style,
    tables,
)
from cgratio.report.content import Content, gather
from cgratio.report.sheet import Ruler, Sheet, close_sheet
from cgratio.results import store


def write_report(results: store.Results, analysis: Analysis, out: Path) -> None:
    """Writes the report of one results folder.

    The same results give the same bytes: no time of writing is stored.

    Args:
        results: what the folder holds.
        analysis: what was found in it.
        out: the PDF file; an older one is replaced.

    Raises:
        OSError: the file cannot be written; an older one is then untouched.
    """
    store.write_whole(out, render(content=gather(results=results, analysis=analysis)))


def render(*, content: Content) -> bytes:
    """Draws every page and returns the PDF."""
    memory = io.BytesIO()
    facts = {
        "Title": f"{content.analysis.sweep}: CPU threads per accelerator",
        "Subject": content.analysis.answer,
        "Creator": f"cgratio {content.version}",
        "CreationDate": None,
    }
    settings: Any = style.settings(content.typeface.families)  # matplotlib types its keys as literals
    with mpl.rc_context(settings), fonts.quiet_search():
        sheets = _draw(content)
        date = content.date or "date not recorded"
        left = f"{content.analysis.sweep} · {content.analysis.host} · {date} · cgratio {content.version}"
        with PdfPages(memory, metadata=facts) as pdf:
            for number, sheet in enumerate(sheets, start=1):
                close_sheet(sheet, left=left, number=number, total=len(sheets))
                _outline(sheet.figure, content.typeface.outlined)
                pdf.savefig(sheet.figure)
    return memory.getvalue()


def _draw(content: Content) -> list[Sheet]:
    ruler = Ruler()
    first, *further = content.workloads()
    sheets = [ratio_page.title_page(content=content, workload=first, ruler=ruler)]
    if content.analysis.valid:
        for workload in (first, *further):
            if workload is not first:
                sheets.append(ratio_page.workload_page(workload=workload, ruler=ruler))
            sheets += actors_page.pages(content=workload, ruler=ruler)
            sheets += share_page.pages(content=workload, ruler=ruler)
            sheets += balance_page.pages(content=workload, ruler=ruler)
        sheets += stages_page.pages(content=content, ruler=ruler)
    sheets += tables.point_pages(content=content, ruler=ruler)
    sheets += tables.trial_pages(content=content, ruler=ruler)
    return sheets + methods_page.pages(content=content, ruler=ruler)


def _outline(figure: Figure, characters: frozenset[str]) -> None:
    """Draws texts with these characters as outlines: their font cannot be embedded as Type 42."""
    if not characters:
        return
    for artist in figure.findobj(Text):
        assert isinstance(artist, Text), "that is what was asked for"
        if characters & set(artist.get_text()):
            artist.set_path_effects([Normal()])
