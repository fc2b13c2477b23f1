"""Tables, and the reasons that stand below them instead of in their cells."""

from dataclasses import replace

import generate
from made_sweeps import Sweep
from pdf_text import page_named, text, whole_text

from cgratio.analysis.analyse import analyse
from cgratio.report import tables
from cgratio.report.sheet import Ruler


def analysed(rows) -> Sweep:
    results = generate.results_of(rows)
    return Sweep(results=results, analysis=analyse(results))


def test_why_no_interval_is_known_is_said_once_on_a_page(drawn):
    rows = generate.make_rows(truth=generate.Truth(base_w=20.0), replicates=1)
    sweep = analysed(rows)
    reader = drawn(sweep)
    why = "one replicate of every point: how launches differ was not seen, so there is no interval"
    assert text(reader.pages[0]).count(why) == sweep.analysis.answer.count(why)
    page = page_named(reader, "The same for all")
    assert f"No interval in samples/s, power, samples/J: {why}." in page
    assert page.count("one replicate") == 1


def test_joules_that_some_points_lack_have_their_reason_below_the_table(with_joules, drawn):
    points = list(with_joules.analysis.points)
    for place in (0, 1, 2):
        why = "the counter was reset"
        points[place] = replace(
            points[place],
            samples_per_joule=replace(
                points[place].samples_per_joule, value=None, low=None, high=None, reason=why
            ),
        )
    analysis = replace(with_joules.analysis, points=tuple(points))
    reader = drawn(replace(with_joules, analysis=analysis))
    assert whole_text(reader).count("A dash in samples/J: the counter was reset.") == 1


def test_of_many_reasons_the_first_are_given(drawn):
    rows = generate.make_rows(truth=generate.Truth(), replicates=1)
    for place, row in enumerate(rows):
        row["samples_per_joule_reason"] = f"reading {place} was lost"
    reader = drawn(analysed(rows))
    assert "reading 0 was lost; reading 1 was lost; and 9 more reasons." in page_named(reader, "Points")
    assert "reading 2 was lost; and" not in page_named(reader, "Throughput and power")
    assert "reading 1 was lost; and 5 more reasons." in page_named(reader, "Throughput and power")


def test_a_reason_of_many_trials_is_written_once_with_their_number(all_failed, drawn):
    pages = [page for page in map(text, drawn(all_failed).pages) if page.startswith("Trials")]
    everything = " ".join(pages)
    assert everything.count("the trainer ended before its first window") == 1
    assert "Reason 1, of 22 trials: the trainer ended before its first window; see logs" in everything
    assert everything.count("killed:SIGKILL 1") == 22


def test_notes_go_on_to_a_further_page():
    ruler = Ruler()
    sheets = tables.lay_out(
        title="T",
        lead="",
        columns=[tables.Column(name="a")],
        rows=[["1"]],
        notes=[f"note {number}" for number in range(60)],
        ruler=ruler,
    )
    assert len(sheets) == 2
    assert all(sheet.top <= sheet.bottom for sheet in sheets)
    words = [artist.get_text() for sheet in sheets for artist in sheet.figure.texts]
    assert [word for word in words if word.startswith("note")] == [f"note {number}" for number in range(60)]
