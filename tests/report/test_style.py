from itertools import pairwise

from matplotlib.colors import to_rgb

from cgratio.report import style


def lightness(colour: str) -> float:
    """CIE L*, 0 black to 100 white: what is left of a colour in greyscale print."""
    linear = [(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for c in to_rgb(colour)]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return 116 * luminance ** (1 / 3) - 16


def test_lines_differ_in_marker_and_stroke_as_well_as_colour():
    assert len({mark.marker for mark in style.MARKS}) == len(style.MARKS)
    assert len({str(mark.line) for mark in style.MARKS}) == len(style.MARKS)


def test_neighbouring_lines_differ_in_greyscale():
    for one, other in pairwise(style.MARKS):
        assert abs(lightness(one.colour) - lightness(other.colour)) > 8


def test_neighbouring_stages_differ_in_greyscale_or_hatch():
    for one, other in (
        ("inference", "transfer"),
        ("transfer", "backpressure"),
        ("backpressure", "wait_batch"),
        ("learner", "wait_data"),
    ):
        (_, first, first_hatch), (_, second, second_hatch) = style.STAGES[one], style.STAGES[other]
        assert abs(lightness(first) - lightness(second)) > 20 or first_hatch != second_hatch


def test_no_size_is_below_eight_points():
    sizes = [style.NAME, style.TITLE, style.HEADING, style.LEAD, style.BODY, style.SMALL]
    sizes += [
        value for name, value in style.settings(["x"]).items() if name.endswith(("labelsize", "fontsize"))
    ]
    assert min(sizes) >= 8.0
