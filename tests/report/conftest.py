"""The sweeps that the tests of this folder draw, and ways to draw them."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pypdf
import pytest

from cgratio.report.content import gather
from cgratio.report.document import render

# The import mode would not find the modules that tests share: those of this folder, and `generate`.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "analysis")]

from made_hosts import host_with_gpu, host_without_gpu  # noqa: E402
from made_sweeps import Sweep  # noqa: E402


@pytest.fixture(scope="session")
def quickstart() -> Sweep:
    return host_without_gpu()


@pytest.fixture(scope="session")
def all_failed() -> Sweep:
    return host_without_gpu(failed=True)


@pytest.fixture(scope="session")
def with_joules() -> Sweep:
    return host_with_gpu(sizes=(4, 32, 128))


@pytest.fixture(scope="session")
def with_modelled_joules() -> Sweep:
    return host_with_gpu(boundary="modelled", sizes=(4, 32))


@pytest.fixture(scope="session")
def large() -> Sweep:
    return host_with_gpu(sizes=tuple(range(1, 23)))


@pytest.fixture(scope="session")
def bare() -> Sweep:
    """Nothing but a name and an answer: its report has few pages and is made fast."""
    made = host_without_gpu(failed=True)
    analysis = replace(made.analysis, points=(), trials=1)
    return replace(made, analysis=analysis, results=replace(made.results, trials=made.results.trials.head(1)))


@pytest.fixture(scope="session")
def drawn() -> Callable[[Sweep], pypdf.PdfReader]:
    """Draws a report; the same sweep is drawn once for all tests."""
    known: dict[int, tuple[Sweep, pypdf.PdfReader]] = {}

    def draw(sweep: Sweep) -> pypdf.PdfReader:
        if id(sweep) not in known:
            content = gather(results=sweep.results, analysis=sweep.analysis)
            # The sweep is kept too, so that no other one can get its id.
            known[id(sweep)] = sweep, pypdf.PdfReader(io.BytesIO(render(content=content)))
        return known[id(sweep)][1]

    return draw
