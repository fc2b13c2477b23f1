"""What stands where on the pages: nothing runs into anything else, and nothing is cut."""

from dataclasses import replace
from itertools import product

import generate
import page_layout
import pytest
from made_hosts import host_with_gpu, host_without_gpu
from made_sweeps import Sweep
from page_layout import box_of

from cgratio.analysis.analyse import analyse
from cgratio.report import ratio_chart
from cgratio.results.words import Part

RATIO = "Rate per accelerator against CPU threads per accelerator"
SUPPLY = "Supply S(c), and the demand it has to meet"


def analysed(places, *, truth, **options) -> Sweep:
    results = generate.results_of(generate.make_rows(truth=truth, places=places, **options))
    return Sweep(results=results, analysis=analyse(results))


def optimum_at(sweep: Sweep, value: float) -> Sweep:
    moved = [
        replace(
            one,
            threads_per_accelerator=replace(
                one.threads_per_accelerator, value=value, low=0.9 * value, high=2 * value
            ),
        )
        for one in sweep.analysis.optima
    ]
    return replace(sweep, analysis=replace(sweep.analysis, optima=tuple(moved)))


def long_answer() -> Sweep:
    """More to say on the first page than it has room for."""
    sweep = host_without_gpu()
    doubt = "the points miss the model " + "and so on " * 12
    analysis = replace(
        sweep.analysis,
        answer="many words that go on and on " * 60,
        notes=("launches differ " + "and so on " * 12,) * 4,
        optima=tuple(replace(one, doubts=(doubt, doubt)) for one in sweep.analysis.optima),
    )
    return replace(sweep, analysis=analysis)


def in_doubt() -> Sweep:
    """Both notes that speak against a ratio, of two workloads that have joules."""
    rows = []
    for seed, name in enumerate(("Pong-v5", "Breakout-v5")):
        rows += generate.make_rows(
            truth=generate.Truth(base_w=20.0), seed=seed, law=half_when_whole, environment=name
        )
    for row in rows:
        if row.get("env_s_per_sample"):
            row["env_s_per_sample"] *= 2.0
    results = generate.results_of(rows)
    return Sweep(results=results, analysis=analyse(results))


def half_when_whole(place: generate.Place) -> float:
    truth = generate.Truth()
    if place.part is Part.SUPPLY:
        return truth.supplied(place.threads)
    if place.part is Part.DEMAND:
        return truth.demanded(place.units)
    return 0.5 * truth.rate(threads=place.threads, amount=place.share, actors=place.actors)


def small_slowdown() -> Sweep:
    """A share costs little, and launches differ by more: bars reach far below zero."""

    def law(place: generate.Place) -> float:
        return 2000.0 if place.part is not Part.WHOLE else 900.0 + 100.0 * place.share

    return analysed(generate.quickstart(), truth=generate.Truth(), law=law, noise=0.2, replicates=2)


def shares_by_eighths() -> Sweep:
    truth = generate.Truth(demand=26000.0)
    places = [generate.Place(threads=8, share=eighths / 8, actors=64) for eighths in range(1, 9)]
    return analysed(places, truth=truth, device="cuda", sm_count=132)


def one_replicate() -> Sweep:
    return analysed(generate.quickstart(), truth=generate.Truth(base_w=20.0), replicates=1)


def noisy() -> Sweep:
    truth = generate.Truth(base_w=20.0, thread_w=9.0, demand=6000.0)
    return analysed(generate.grid(), truth=truth, noise=0.3, replicates=2)


def close_levels() -> Sweep:
    """Five amounts of accelerator that all take about the same."""
    truth = generate.Truth(demand=1000.0, delta=0.6)
    return analysed(generate.grid(threads=(1, 2, 4), units=(1, 2, 3, 4, 5), actors=(64,)), truth=truth)


def long_names() -> Sweep:
    rows = []
    for seed, name in enumerate(
        ("Pong-v5", "my.company.package:A-Very-Long-Environment-Name-With-Variants-v12")
    ):
        rows += generate.make_rows(truth=generate.Truth(), seed=seed, environment=name)
    results = generate.results_of(rows)
    return Sweep(results=results, analysis=analyse(results))


SWEEPS = {
    "without a GPU": host_without_gpu,
    "with a GPU": lambda: host_with_gpu(sizes=(4, 32)),
    "modelled joules": lambda: host_with_gpu(boundary="modelled", sizes=(32,)),
    "all failed": lambda: host_without_gpu(failed=True),
    "optimum far left": lambda: optimum_at(host_without_gpu(), 0.02),
    "optimum far right": lambda: optimum_at(host_without_gpu(), 60.0),
    "long answer": long_answer,
    "noisy": noisy,
    "close levels": close_levels,
    "long names": long_names,
    "in doubt": in_doubt,
    "small slowdown": small_slowdown,
    "shares by eighths": shares_by_eighths,
    "one replicate": one_replicate,
}


@pytest.fixture(scope="module")
def laid_out():
    known = {}

    def lay_out(name: str) -> list[page_layout.Page]:
        if name not in known:
            known[name] = page_layout.pages(SWEEPS[name]())
        return known[name]

    return lay_out


@pytest.mark.parametrize("name", SWEEPS)
def test_no_words_run_into_others_or_leave_the_page(name, laid_out):
    for page in laid_out(name):
        assert not page.overlaps(), page.title
        assert not page.outside(), page.title


@pytest.mark.parametrize("name", SWEEPS)
def test_points_and_their_bars_lie_inside_their_pictures(name, laid_out):
    for page in laid_out(name):
        for title, axes in page.pictures.items():
            assert not page_layout.ends_outside(axes), (page.title, title)


@pytest.mark.parametrize("name", ["without a GPU", "optimum far left", "optimum far right", "noisy"])
def test_the_line_of_the_optimum_is_seen_and_ends_below_its_label(name, laid_out):
    axes = laid_out(name)[0].pictures[RATIO]
    (line,) = [line for line in axes.lines if line.get_ydata()[-1] == ratio_chart.LINE_TOP]
    (label,) = [text for text in axes.texts if text.get_text().startswith("optimum")]
    low, high = axes.get_xlim()
    assert low < line.get_xdata()[0] < high
    assert box_of(line).y1 <= box_of(label).y0
    # Nor does a bar or the band of a point reach the words.
    assert all(box.y1 <= box_of(label).y0 for box in marks(axes))


def test_a_long_answer_and_what_speaks_against_it_leave_the_picture_its_height(laid_out):
    """Lower, and the words at its top would run into each other."""
    axes = laid_out("long answer")[0].pictures[RATIO]
    assert axes.get_window_extent().height * 72 / page_layout.DPI > 150.0


def test_marks_of_near_optimal_counts_stay_apart(laid_out):
    def mark(name):
        axes = laid_out(name)[0].pictures[RATIO]
        (line,) = [line for line in axes.lines if "of the best" in str(line.get_label())]
        return line.get_marker()

    assert mark("without a GPU") == "^"  # 2, 3 and 4 of up to 4
    assert mark("with a GPU") == "|"  # 12, 13 and 14 of up to 128


@pytest.mark.parametrize("name", ["without a GPU", "optimum far left", "in doubt", "small slowdown"])
def test_no_line_of_the_grid_strikes_out_words_in_a_picture(name, laid_out):
    pages = laid_out(name)
    found = [pages[0], page_layout.named(pages, "Supply and demand")]
    words = [text for page in found for axes in page.pictures.values() for text in axes.texts]
    assert words
    assert all(text.get_bbox_patch() is not None for text in words)


def test_zero_lies_inside_the_pictures_of_slowdown(laid_out):
    """So that the point of the largest share is seen whole, and negative bars are read as such."""
    page = page_layout.named(laid_out("small slowdown"), "Slowdown")
    for axes in page.pictures.values():
        low, high = axes.get_ylim()
        assert low < 0 < high


def marks(axes):
    return [box_of(line) for line in axes.lines if len(line.get_xdata()) > 2]


def test_levels_of_demand_near_to_each_other_are_named_once(laid_out):
    axes = page_layout.named(laid_out("close levels"), "Supply and demand").pictures[SUPPLY]
    names = [text.get_text() for text in axes.texts]
    assert any(name.startswith("1 device CPU: ") for name in names)
    assert len(names) < 5


def test_crosses_where_supply_meets_demand_are_not_under_words(laid_out):
    for name in ("without a GPU", "with a GPU", "close levels"):
        axes = page_layout.named(laid_out(name), "Supply and demand").pictures[SUPPLY]
        crosses = [box_of(line) for line in axes.lines if line.get_marker() == "X"]
        words = [box_of(text) for text in axes.texts]
        assert crosses
        assert not any(cross.overlaps(box) for cross, box in product(crosses, words))
