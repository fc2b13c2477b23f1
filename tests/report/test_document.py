import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pypdf
import pytest

from cgratio.analysis.facts import Quantity
from cgratio.report import fonts, style
from cgratio.report.content import gather
from cgratio.report.document import render, write_report


def changed(sweep, **values):
    return replace(sweep, analysis=replace(sweep.analysis, **values))


def text(page: pypdf.PageObject) -> str:
    """The text of a page in one line: wrapping is not what these tests are about."""
    return " ".join(page.extract_text().split())


def whole_text(reader: pypdf.PdfReader) -> str:
    return " ".join(text(page) for page in reader.pages)


def page_named(reader: pypdf.PdfReader, title: str) -> str:
    return next(found for page in reader.pages if title in (found := text(page)))


def used_fonts(reader: pypdf.PdfReader) -> list[pypdf.generic.DictionaryObject]:
    resources = [page["/Resources"].get_object() for page in reader.pages]
    return [font.get_object() for found in resources for font in found.get("/Font", {}).values()]


def test_first_page_gives_the_answer_and_what_it_rests_on(quickstart, drawn):
    page = text(drawn(quickstart).pages[0])
    assert "quickstart" in page
    assert quickstart.analysis.answer in page
    assert "environments limit" in page
    assert "accelerator limits" in page
    assert "optimum 1.37 (1.21 to 1.53)" in page
    assert "22 of 22 valid" in page
    assert quickstart.analysis.optima[0].counting_rule in page
    assert "measured 2025-03-04" in page
    assert "AMD EPYC 7B13" in page


def test_a_value_that_is_unknown_is_given_with_its_reason(quickstart, drawn):
    page = text(drawn(quickstart).pages[0])
    assert "device CPUs stand in for the accelerator: no SMs" in page
    assert "no power sensor: RAPL is not readable and there is no GPU" in page


def test_unknown_joules_are_a_reason_in_place_of_an_empty_axis(quickstart, drawn):
    page = page_named(drawn(quickstart), "Throughput and power")
    assert page.count("Unknown: no power sensor: RAPL is not readable and there is no GPU") == 2


def test_joules_name_what_they_cover(with_joules, drawn):
    page = page_named(drawn(with_joules), "Throughput and power")
    assert "Power (gpu_board)" in page
    assert "Samples per joule (gpu_board)" in page
    assert "Unknown" not in page


def test_modelled_joules_are_marked_in_title_and_axis(with_modelled_joules, drawn):
    page = page_named(drawn(with_modelled_joules), "Throughput and power")
    assert "Power (modelled)" in page
    assert "Samples per joule (modelled)" in page
    assert "samples/J, modelled" in page
    assert "W, modelled" in page


def test_slowdown_is_given_in_both_readings_with_their_names(quickstart, drawn):
    page = page_named(drawn(quickstart), "Slowdown")
    assert "60 % of the throughput is lost (1 − X/X0" in page
    assert "150 % more time (X0/X − 1)" in page


def test_a_single_share_is_said_to_be_one(quickstart, drawn):
    kept = tuple(p for p in quickstart.analysis.points if p.axes["sm_share"] in {None, 1.0})
    page = page_named(
        drawn(replace(quickstart, analysis=replace(quickstart.analysis, points=kept))), "Slowdown"
    )
    assert "Only one share was measured (1)" in page


def test_every_point_has_its_limit(quickstart, drawn):
    page = page_named(drawn(quickstart), "Where the time goes")
    assert "9 by accelerator, 2 by environments" in page
    assert "supply · 16 actors · 2 actor CPUs" in page


def test_supply_and_demand_cross_at_a_number_of_threads(quickstart, drawn):
    page = page_named(drawn(quickstart), "Supply and demand")
    assert "For 1 device CPU, supply meets demand at 1.36 threads" in page


def test_without_supply_and_demand_the_page_says_so(quickstart, drawn):
    curves = tuple(c for c in quickstart.analysis.curves if c.name not in {"supply", "demand"})
    points = tuple(p for p in quickstart.analysis.points if p.axes["part"] == "whole")
    page = page_named(
        drawn(changed(quickstart, curves=curves, points=points)),
        "Supply and demand",
    )
    assert "no supply and no demand curve was fitted" in page
    assert "No valid trial of the part `supply`" in page


def test_methods_come_from_the_manifest(quickstart, drawn):
    page = page_named(drawn(quickstart), "Windows and replicates")
    for words in (
        "missing: no powercap folder",
        "envpool 1.2.5",
        "two replicates: intervals are wide",
        "7.76 GiB",
    ):
        assert words in page
    assert "x.parquet: not a Parquet file" in page


def test_an_empty_manifest_is_not_recorded_rather_than_a_crash(quickstart, drawn):
    reader = drawn(replace(quickstart, results=replace(quickstart.results, manifest={})))
    assert page_named(reader, "Windows and replicates").count("not recorded") >= 6


def test_all_trials_failed_makes_a_report_that_says_so(all_failed, drawn):
    reader = drawn(all_failed)
    first = text(reader.pages[0])
    assert "No trial gave a valid measurement, so there is no answer." in first
    assert "none of 22 trials gave a valid measurement" in first
    assert "killed:SIGKILL ×22" in first
    assert "the trainer ended before its first window" in page_named(reader, "in the order in which they ran")
    assert "Throughput and power" not in whole_text(reader)


def test_without_points_or_curves_the_report_is_still_drawn(quickstart, drawn):
    nothing = changed(quickstart, points=(), curves=(), optima=(), answer="Nothing was found.")
    assert "Nothing was found." in text(drawn(nothing).pages[0])


@pytest.mark.slow
def test_large_tables_go_over_as_many_pages_as_they_need(large, drawn):
    reader = drawn(large)
    assert len(large.analysis.points) > 200
    titles = [text(page)[:16] for page in reader.pages]
    points = [title for title in titles if title.startswith("Points")]
    trials = [title for title in titles if title.startswith("Trials")]
    assert len(points) == -(-len(large.analysis.points) // 32)
    assert len(trials) <= -(-len(large.results.trials) // 30)
    everything = whole_text(reader)
    for trial_id in large.results.trials["trial_id"]:
        assert trial_id in everything
    assert f"{len(reader.pages)} / {len(reader.pages)}" in text(reader.pages[-1])


def test_each_workload_has_its_own_pictures(quickstart, drawn):
    analysis = quickstart.analysis

    def of(environment: str):
        group = {"environment": environment}
        return (
            tuple(replace(c, group=group) for c in analysis.curves),
            tuple(replace(o, group=group) for o in analysis.optima),
            tuple(
                replace(p, axes=p.axes | group, point_id=p.point_id + environment) for p in analysis.points
            ),
        )

    both = [of("Pong-v5"), of("Breakout-v5")]
    curves, optima, points = (sum(parts, ()) for parts in zip(*both, strict=True))
    reader = drawn(
        replace(quickstart, analysis=replace(analysis, curves=curves, optima=optima, points=points))
    )
    everything = whole_text(reader)
    assert "CPU threads per accelerator: Breakout-v5" in everything
    assert "Slowdown with a smaller share of the accelerator: Pong-v5" in everything


@pytest.mark.parametrize("name", ["cost $5 vs $6", "a$$b", "Zürich", r"\frac{1}{2}", "100 % {x} [gpu0] #_^~"])
def test_names_are_shown_literally(bare, name, drawn):
    reader = drawn(bare.named(name))
    assert name in text(reader.pages[0])
    assert reader.metadata.title.startswith(name)


def test_a_name_without_a_font_is_shown_as_code_points(bare, monkeypatch, drawn):
    monkeypatch.setattr(fonts, "_candidates", lambda _families: [])
    reader = drawn(bare.named("訓練"))
    assert r"\u8a13\u7df4" in text(reader.pages[0])


def test_a_name_of_another_script_never_warns_or_crashes(bare, drawn):
    # Readable where the machine has a font, code points where it has none; either way a PDF.
    assert len(drawn(bare.named("訓練 тест δοκιμή اختبار 😀")).pages) >= 3


@pytest.mark.parametrize("name", ["a\nb\tc", "\x1b[31m", "\ud800", "x" * 400, "word " * 120, "\u202eevil"])
def test_odd_names_stay_on_the_page(bare, name, drawn):
    reader = drawn(bare.named(name))
    assert "No trial gave a valid measurement" in text(reader.pages[0])
    assert reader.pages[0].mediabox.width == pytest.approx(style.WIDTH, abs=1)


def test_fonts_are_embedded_and_none_is_type_3(with_joules, drawn):
    found = used_fonts(drawn(with_joules.named("cost $5 vs $6 Zürich")))
    assert found
    for font in found:
        assert font["/Subtype"] == "/Type0"
        descendant = font["/DescendantFonts"][0].get_object()
        assert descendant["/Subtype"] == "/CIDFontType2"
        assert "/FontFile2" in descendant["/FontDescriptor"].get_object()


def test_no_text_is_smaller_than_eight_points(with_joules, drawn):
    for page in drawn(with_joules).pages:
        sizes = re.findall(rb"/F\S+ ([\d.]+) Tf", page.get_contents().get_data())
        assert min(float(size) for size in sizes) >= 8.0


def test_the_same_results_give_the_same_bytes(quickstart):
    content = gather(results=quickstart.results, analysis=quickstart.analysis)
    assert render(content=content) == render(content=content)


def test_the_file_appears_whole_or_not_at_all(quickstart, tmp_path, monkeypatch):
    out = tmp_path / "report.pdf"
    out.write_bytes(b"older")

    def fail(**_: object) -> bytes:
        raise RuntimeError("stopped")

    monkeypatch.setattr("cgratio.report.document.render", fail)
    with pytest.raises(RuntimeError):
        write_report(quickstart.results, quickstart.analysis, out)
    assert out.read_bytes() == b"older"
    assert [path.name for path in tmp_path.iterdir()] == ["report.pdf"]


def test_a_very_long_answer_keeps_the_picture(quickstart, drawn):
    answer = "many words that go on and on " * 60
    page = text(drawn(changed(quickstart, answer=answer)).pages[0])
    assert "Rate per accelerator" in page
    assert "…" in page


def test_a_hopeless_band_does_not_flatten_the_data(quickstart, drawn):
    wild = tuple(
        replace(c, low=tuple(0.0 for _ in c.y), high=tuple(1e20 for _ in c.y))
        for c in quickstart.analysis.curves
    )
    page = text(drawn(replace(quickstart, analysis=replace(quickstart.analysis, curves=wild))).pages[0])
    assert "2,500" in page


def test_points_without_intervals_are_drawn(quickstart, drawn):
    def alone(quantity: Quantity) -> Quantity:
        return replace(quantity, low=None, high=None, reason="one replicate")

    analysis = quickstart.analysis
    points = tuple(replace(p, rate=alone(p.rate)) for p in analysis.points)
    optima = tuple(
        replace(o, threads_per_accelerator=alone(o.threads_per_accelerator)) for o in analysis.optima
    )
    page = text(drawn(changed(quickstart, points=points, optima=optima)).pages[0])
    assert "no interval: one replicate" in page


def test_reports_need_neither_torch_nor_a_display():
    code = (
        "import sys, cgratio.report.document; "
        "bad = {'torch', 'envpool', 'pynvml', 'matplotlib.pyplot', 'cgratio.trainer', 'cgratio.telemetry'}; "
        "sys.exit(', '.join(sorted(bad & sys.modules.keys())) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
