"""How every page looks: sizes, colours, marks. One place, so that pages agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cgratio.analysis.facts import Bottleneck

# A4 landscape, in points (1/72 inch).
WIDTH, HEIGHT = 841.9, 595.3
MARGIN = 44.0

# Font sizes in points; nothing in print is smaller than 8.
NAME, TITLE, HEADING, LEAD, BODY, SMALL = 20.0, 16.0, 10.5, 10.5, 9.0, 8.0
LINE = 1.36  # line height / font size

INK = "#1A1A1A"
MUTED = "#5A5A5A"
HAIRLINE = "#C9C9C9"
PALE = "#F3F3F1"
WARNING = "#FFF0B8"  # behind what speaks against an answer

# Two sides of the question keep their colour and their mark on every page.
SUPPLY, DEMAND = "#0B4F8A", "#C4500A"
OPTIMUM = "#00704E"
CONTEXT = "#9A9A9A"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How one series looks; colour, marker and line differ together so that greyscale print still tells."""

    colour: str
    marker: str
    line: Any


# Colours after Okabe and Ito (told apart with any colour vision), in steps of lightness.
MARKS = (
    Mark(colour="#0B3C6F", marker="o", line="-"),
    Mark(colour="#C4500A", marker="s", line=(0, (5, 2))),
    Mark(colour="#1B9E77", marker="^", line=(0, (1, 1.5))),
    Mark(colour="#6DB6E3", marker="D", line=(0, (6, 2, 1, 2))),
    Mark(colour="#7A3E86", marker="v", line=(0, (3, 1, 1, 1, 1, 1))),
    Mark(colour="#D99A00", marker="P", line=(0, (8, 3))),
)

REGIMES = {
    Bottleneck.ENVIRONMENTS: ("environments limit", "#E4EEF7"),
    Bottleneck.ACCELERATOR: ("accelerator limits", "#FBEBDD"),
    Bottleneck.ACTORS: ("too few actors in flight", "#EFEFEC"),
    Bottleneck.UNKNOWN: ("limit not known", "#F7F7F5"),
}

# Behind words in a picture: a line of the grid would strike them out.
GROUND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0}

# Stage -> (name, colour, hatch): lightness and hatch differ between neighbours in a bar.
STAGES = {
    "wait_batch": ("waits for environments", "#A9CBE8", "////"),
    "inference": ("inference", "#C4500A", ""),
    "transfer": ("transfer", "#F3CFA6", ""),
    "backpressure": ("waits for learner", "#7A7A7A", "...."),
    "learner": ("learner update", "#7A3E86", ""),
    "wait_data": ("waits for data", "#A9CBE8", "////"),
    "env": ("actor CPUs busy", SUPPLY, ""),
    "device_busy": ("accelerator busy", DEMAND, ""),
}


def settings(families: Sequence[str]) -> dict[str, Any]:
    """The matplotlib settings of a report, for `matplotlib.rc_context`."""
    return {
        "font.family": list(families),
        "font.size": BODY,
        "text.parse_math": False,  # a `$` in a name is a dollar
        "text.usetex": False,
        "text.color": INK,
        "pdf.fonttype": 42,
        "pdf.use14corefonts": False,
        "pdf.compression": 6,
        "savefig.bbox": None,
        "savefig.facecolor": "white",
        "axes.titlesize": HEADING,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 8.0,
        "axes.labelsize": BODY,
        "axes.labelcolor": INK,
        "axes.edgecolor": MUTED,
        "axes.linewidth": 0.7,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.formatter.use_mathtext": False,
        "axes.unicode_minus": True,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.color": "#E2E2E2",
        "grid.linewidth": 0.6,
        "xtick.labelsize": 8.5,
        "ytick.labelsize": 8.5,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "legend.fontsize": 8.5,
        "legend.frameon": False,
        "legend.handlelength": 3.2,
        "lines.linewidth": 1.6,
        "lines.markersize": 6.5,
        "hatch.linewidth": 0.5,
        "hatch.color": "#4A4A4A",
    }
