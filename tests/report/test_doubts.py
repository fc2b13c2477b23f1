"""A ratio that notes speak against is never shown without them."""

from dataclasses import replace

import generate
import pytest
from made_sweeps import Sweep
from pdf_text import page_named, text

from cgratio.analysis.analyse import analyse

HEADING = "In doubt: the trials do not all agree with this answer"
DOUBT = "service times say 9.9 threads, in DISAGREEMENT with the interval of the rates"


def doubted(sweep: Sweep, *, only: str | None = None) -> Sweep:
    """The same with a doubt about each ratio, or about that of one environment only."""
    optima = tuple(
        replace(one, doubts=(DOUBT,)) if only in {None, one.group.get("environment")} else one
        for one in sweep.analysis.optima
    )
    return replace(sweep, analysis=replace(sweep.analysis, optima=optima))


@pytest.fixture(scope="module")
def in_doubt(quickstart) -> Sweep:
    return doubted(quickstart)


@pytest.fixture(scope="module")
def two_workloads() -> Sweep:
    rows = []
    for seed, name in enumerate(("Pong-v5", "Breakout-v5")):
        rows += generate.make_rows(truth=generate.Truth(), seed=seed, environment=name)
    results = generate.results_of(rows)
    return Sweep(results=results, analysis=analyse(results))


def test_first_page_quotes_what_speaks_against_the_ratio(in_doubt, drawn):
    page = text(drawn(in_doubt).pages[0])
    assert HEADING in page
    assert f"• {DOUBT}" in page


def test_numbers_that_are_in_doubt_say_so_first(in_doubt, drawn):
    page = text(drawn(in_doubt).pages[0])
    assert "Within 5 % of the best in doubt: 2–4 whole threads per accelerator" in page
    assert "threads per accelerator in doubt: 1.37 95 % interval" in page
    assert "physical cores per accelerator in doubt: 0.685" in page
    assert "optimum 1.37 [1.21, 1.53], in doubt" in page
    assert "within 5 % of the best, in doubt" in page
    assert "in doubt: unknown" not in page


def test_without_doubts_nothing_is_said(quickstart, drawn):
    assert "doubt" not in text(drawn(quickstart).pages[0])


def test_each_workload_has_its_doubts_on_its_own_page(two_workloads, drawn):
    reader = drawn(doubted(two_workloads, only="Breakout-v5"))
    first = text(reader.pages[0])
    assert HEADING in first
    assert "the ratio of Breakout-v5 is in doubt for reasons on its own page" in first
    assert DOUBT not in first
    assert "in doubt: " not in first
    own = page_named(reader, "CPU threads per accelerator: Breakout-v5")
    assert DOUBT in own
    assert "in doubt: 1, 2" in own


def test_doubts_are_among_the_notes():
    rows = generate.make_rows(truth=generate.Truth())
    agreed = analyse(generate.results_of(rows))
    assert agreed.optima[0].doubts == ()
    for row in rows:
        if row.get("env_s_per_sample"):
            row["env_s_per_sample"] *= 2.0
    found = analyse(generate.results_of(rows))
    (doubt,) = found.optima[0].doubts
    assert "in DISAGREEMENT" in doubt
    assert doubt in found.notes
    assert "the trials do not all agree" in found.answer
