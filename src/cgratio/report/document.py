"""The whole report: its pages in order, written as one PDF file that appears whole or not at all."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from cgratio.analysis.facts import Analysis
from cgratio.report import (
    actors_page,
    balance_page,
    fonts,
    methods_page,
    points_page,
    ratio_page,
    share_page,
    stages_page,
    style,
    trials_page,
)
from cgratio.report.content import Content, gather
from cgratio.report.gaps import Gap
from cgratio.report.sheet import Ruler, Sheet, close_sheet
from cgratio.results import store

_DIGITS = 6  # of a page's width: a thousandth of a point


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
        sheets = draw(content)
        date = content.date or "date not recorded"
        left = f"{content.analysis.sweep} · {content.analysis.host} · {date} · cgratio {content.version}"
        with PdfPages(memory, metadata=facts) as pdf:
            for number, sheet in enumerate(sheets, start=1):
                close_sheet(sheet, left=left, number=number, total=len(sheets))
                _outline(sheet.figure, content.typeface.outlined)
                _settle(sheet.figure)
                pdf.savefig(sheet.figure)
    return memory.getvalue()


def draw(content: Content) -> list[Sheet]:
    """Draws every page, without its footer; to be called with the settings of the report."""
    ruler = Ruler()
    workloads = content.workloads()
    sheets = [ratio_page.title_page(content=content, workloads=workloads, ruler=ruler)]
    gaps: list[Gap] = []
    for workload in workloads if content.analysis.valid else ():
        if workload is not workloads[0]:
            sheets.append(ratio_page.workload_page(workload=workload, ruler=ruler))
        for made in (
            actors_page.page(content=workload, ruler=ruler),
            share_page.page(content=workload, ruler=ruler),
            balance_page.page(content=workload, ruler=ruler),
        ):
            if isinstance(made, Gap):
                gaps.append(made)
            else:
                sheets.append(made)
    if content.analysis.valid:
        sheets += stages_page.pages(content=content, ruler=ruler)
    sheets += points_page.pages(content=content, ruler=ruler)
    sheets += trials_page.pages(content=content, ruler=ruler)
    return sheets + methods_page.pages(content=content, gaps=gaps, ruler=ruler)


def _settle(figure: Figure) -> None:
    """Lays out a page once and rounds where its pictures lie.

    The solver adds in an order that memory addresses decide, so that last digits differ from run to run.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for part in figure.subfigs:
        part.bbox_relative.set_points(np.round(part.bbox_relative.get_points(), _DIGITS))
    for axes in figure.findobj(Axes):
        assert isinstance(axes, Axes), "that is what was asked for"
        axes.set_position(Bbox(np.round(axes.get_position().get_points(), _DIGITS)))


def _outline(figure: Figure, characters: frozenset[str]) -> None:
    """Draws texts with these characters as outlines: their font cannot be embedded as Type 42."""
    if not characters:
        return
    for artist in figure.findobj(Text):
        assert isinstance(artist, Text), "that is what was asked for"
        if characters & set(artist.get_text()):
            artist.set_path_effects([Normal()])
