import pytest

from cgratio.analysis.facts import Origin, Quantity
from cgratio.report import wording


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1"),
        (1.374, "1.37"),
        (0.08643, "0.0864"),
        (12345.6, "12,346"),
        (99.99, "100"),
        (-0.5, "-0.5"),
        (3e12, "3e+12"),
        (2.5e-7, "2.5e-07"),
    ],
)
def test_numbers_keep_three_digits(value, text):
    assert wording.number(value) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.05, "5 %"), (0.065, "6.5 %"), (0.6, "60 %"), (-0.02, "−2 %"), (0, "0 %")]
)
def test_shares_are_whole_per_cent_where_they_can_be(share, text):
    assert wording.percent(share) == text


@pytest.mark.parametrize(
    ("counts", "text"),
    [((), ""), ((2,), "2"), ((2, 3), "2, 3"), ((2, 3, 4), "2–4"), ((1, 4, 5, 6, 9), "1, 4–6, 9")],
)
def test_runs_of_counts_are_joined(counts, text):
    assert wording.ranges(counts) == text


def test_a_missing_interval_says_why():
    alone = Quantity(value=2.0, unit="W", reason="one replicate")
    assert wording.detail(alone) == "no interval: one replicate · measured"
    assert wording.cell(alone) == "2.00"


def test_results_keep_the_zeros_that_say_how_precise_they_are():
    assert [wording.rounded(value) for value in (0.57, 2.1, 99.99, 12345.6, 0)] == [
        "0.570",
        "2.10",
        "100",
        "12,346",
        "0",
    ]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (97.0, 103.0, "100.0 ± 3.0"),
        (90.4, 110.0, "100 ± 10"),
        (80.0, 125.0, "100 [80.0, 125]"),
        (80.0, None, "100 [80.0, no upper end]"),
        (None, 125.0, "100 [no lower end, 125]"),
        (100.0, 100.0, "100 [100, 100]"),
    ],
)
def test_one_half_width_is_shown_only_where_it_is_true_of_both_sides(low, high, text):
    lopsided = Quantity(value=100.0, low=low, high=high, unit="samples/J", reason="an end is missing")
    assert wording.cell(lopsided) == text


def test_an_extrapolated_or_modelled_number_is_marked_in_a_table():
    far = Quantity(value=16.7, low=15.0, high=20.0, unit="actors", origin=Origin.EXTRAPOLATED)
    assert wording.cell(far) == "16.7 [15.0, 20.0] extrapolated"
    model = Quantity(value=41.5, unit="W", origin=Origin.MODELLED, reason="a model has no interval")
    assert wording.cell(model) == "41.5 modelled"


def test_long_names_keep_both_ends():
    assert wording.brief("Pong-v5") == "Pong-v5"
    assert wording.brief("my.company.package:Very-Long-Name-v12") == "my.compan…g-Name-v12"


def test_unknown_is_a_dash_in_a_table_and_a_reason_in_words():
    nothing = Quantity.unknown(unit="W", reason="no sensor")
    assert wording.cell(nothing) == "–"
    assert wording.amount(nothing) == "unknown"
    assert wording.detail(nothing) == "no sensor"


def test_of_many_reasons_the_first_are_given_each_once():
    assert wording.reasons([]) == ""
    assert wording.reasons(["a", "b", "a"]) == "a; b"
    assert wording.reasons(["a", "b", "c"]) == "a; b; and 1 more reason"
