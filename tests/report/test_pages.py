import re
from dataclasses import replace

import generate
import pytest
from made_sweeps import Sweep
from pdf_text import page_named, text, whole_text

from cgratio.analysis.analyse import analyse
from cgratio.analysis.facts import Quantity


def changed(sweep, **values):
    return replace(sweep, analysis=replace(sweep.analysis, **values))


def test_first_page_gives_the_answer_and_what_it_rests_on(quickstart, drawn):
    page = text(drawn(quickstart).pages[0])
    assert "quickstart" in page
    assert quickstart.analysis.answer in page
    assert "environments limit" in page
    assert "accelerator limits" in page
    assert "optimum 1.37 [1.21, 1.53]" in page
    assert "22 of 22 valid" in page
    assert quickstart.analysis.optima[0].counting_rule in page
    assert "measured 2025-03-04" in page
    assert "AMD EPYC 7B13" in page


def test_a_value_that_is_unknown_is_given_with_its_reason(quickstart, drawn):
    page = text(drawn(quickstart).pages[0])
    assert "device CPUs stand in for the accelerator: no SMs" in page
    assert "no power sensor: RAPL is not readable and there is no GPU" in page


def test_unknown_joules_are_one_sentence_in_place_of_two_pictures(quickstart, drawn):
    page = page_named(drawn(quickstart), "Throughput and power")
    assert (
        "Power · Samples per joule Unknown: no power sensor: RAPL is not readable and there is no GPU."
        in page
    )


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


def test_modelled_joules_are_marked_in_the_table_of_points(with_modelled_joules, drawn):
    page = page_named(drawn(with_modelled_joules), "Points")
    assert "power, W" in page
    assert page.count("95 % interval") == 1  # that of samples/s
    known = [point for point in with_modelled_joules.analysis.points if point.boundary]
    # Two numbers and the boundary of each point, and the two headers.
    assert page.count("modelled") == 3 * len(known) + 2


def test_slowdown_is_given_in_both_readings_with_their_names(quickstart, drawn):
    page = page_named(drawn(quickstart), "Slowdown")
    assert "60 % of the throughput is lost (1 − X/X0" in page
    assert "150 % more time (X0/X − 1)" in page


def test_slowdown_is_zero_at_the_largest_share_and_the_width_of_the_band_there_is_explained(
    quickstart, drawn
):
    page = page_named(drawn(quickstart), "Slowdown")
    assert "the largest share measured, 1, where both readings are 0 by definition and have no bar" in page
    assert "The band is that of the fitted rate X alone" in page
    assert "begin at zero" not in page
    bare = tuple(replace(c, band=False, low=c.y, high=c.y) for c in quickstart.analysis.curves)
    assert "The band" not in page_named(drawn(changed(quickstart, curves=bare)), "Slowdown")


def test_a_page_with_nothing_to_show_is_left_out_with_its_reason(quickstart, drawn):
    kept = tuple(p for p in quickstart.analysis.points if p.axes["sm_share"] in {None, 1.0})
    reader = drawn(replace(quickstart, analysis=replace(quickstart.analysis, points=kept)))
    assert not any(text(page).startswith("Slowdown") for page in reader.pages)
    assert "Only one share was measured (1); sweep `sm_share`" in page_named(reader, "Pictures left out")


def test_every_point_has_its_limit(quickstart, drawn):
    page = page_named(drawn(quickstart), "Where the time goes")
    assert "9 by accelerator, 2 by environments" in page
    assert "supply · 16 actors · 2 actor CPUs" in page


def test_supply_and_demand_cross_at_a_number_of_threads(quickstart, drawn):
    page = page_named(drawn(quickstart), "Supply and demand")
    assert "For 1 device CPU, supply meets demand at 1.36 threads" in page


def test_without_supply_and_demand_the_reason_is_given(quickstart, drawn):
    curves = tuple(c for c in quickstart.analysis.curves if c.name not in {"supply", "demand"})
    points = tuple(p for p in quickstart.analysis.points if p.axes["part"] == "whole")
    page = page_named(drawn(changed(quickstart, curves=curves, points=points)), "Pictures left out")
    assert "No supply and no demand curve was fitted" in page
    assert "No valid trial of the part `supply`" in page


def test_demand_of_one_amount_is_a_sentence_and_not_a_picture_of_one_point(quickstart, drawn):
    points = tuple(
        p for p in quickstart.analysis.points if p.axes["part"] != "demand" or p.axes["device_cpus"] == 1
    )
    curves = tuple(
        replace(c, measured_low=1.0, measured_high=1.0) if c.name == "demand" else c
        for c in quickstart.analysis.curves
    )
    page = page_named(drawn(changed(quickstart, points=points, curves=curves)), "Supply and demand")
    assert "Demand D(s) Measured for 1 device CPU only: 1,900 ± 57 samples/s." in page


def test_a_crossing_beyond_the_curves_is_told_from_the_optimum(quickstart, drawn):
    def far(curve):
        return replace(curve, y=tuple(20 * y for y in curve.y)) if curve.name == "demand" else curve

    curves = tuple(map(far, quickstart.analysis.curves))
    page = page_named(drawn(changed(quickstart, curves=curves)), "Supply and demand")
    assert "Supply meets demand at 1.37 threads per device CPU (fitted), further than the curves" in page


def test_first_page_tells_how_noisy_the_host_was(drawn):
    rows = generate.make_rows(truth=generate.Truth(), noise=0.1, replicates=3)
    results = generate.results_of(rows)
    page = text(drawn(Sweep(results=results, analysis=analyse(results))).pages[0])
    assert re.search(r"Notes: launches of one point differ by \d+\.\d%", page)


def test_first_page_says_that_one_launch_shows_no_noise(drawn):
    results = generate.results_of(generate.make_rows(truth=generate.Truth(), replicates=1))
    page = text(drawn(Sweep(results=results, analysis=analyse(results))).pages[0])
    assert "Notes: one replicate of every point" in page


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
    assert "None of 22 trials gave a valid measurement (killed:SIGKILL ×22)" in first
    assert "most often: the trainer ended before its first window" in first
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
    assert "4,000" in page
    assert "10,000" not in page


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


def test_a_reason_that_the_answer_gives_is_not_given_again_beside_it(quickstart, drawn):
    why = quickstart.analysis.optima[1].threads_per_accelerator.reason
    page = text(drawn(changed(quickstart, answer=f"Samples per joule are unknown ({why}).")).pages[0])
    assert page.count(why) == 1
    assert "unknown the answer says why" in page
    # Where the answer is too long to be printed whole, the reason stands beside it.
    page = text(drawn(changed(quickstart, answer=f"{'many words ' * 200} ({why}).")).pages[0])
    assert page.count(why) == 1
    assert "the answer says why" not in page
