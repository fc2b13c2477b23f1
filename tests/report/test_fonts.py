import io
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import pypdf
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager

from cgratio.report import fonts
from cgratio.report.content import gather
from cgratio.report.document import render

WIDE = "訓練"


def draw(pen) -> None:
    pen.moveTo((100, 0))
    for corner in ((900, 0), (900, 800), (100, 800)):
        pen.lineTo(corner)
    pen.closePath()


def make_font(path: Path, *, family: str, characters: str, postscript: bool) -> None:
    """Writes a font in which each character is a box."""
    names = [".notdef", *(f"uni{ord(character):04X}" for character in characters)]
    builder = FontBuilder(1000, isTTF=not postscript)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap(dict(zip(map(ord, characters), names[1:], strict=True)))
    if postscript:
        shapes = {}
        for name in names:
            pen = T2CharStringPen(1000, None)
            draw(pen)
            shapes[name] = pen.getCharString()
        builder.setupCFF(family, {"FullName": family}, shapes, {})
    else:
        shapes = {}
        for name in names:
            pen = TTGlyphPen(None)
            draw(pen)
            shapes[name] = pen.glyph()
        builder.setupGlyf(shapes)
    builder.setupHorizontalMetrics(dict.fromkeys(names, (1000, 100)))
    builder.setupHorizontalHeader(ascent=880, descent=-120)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=880, sTypoDescender=-120, usWinAscent=880, usWinDescent=120)
    builder.setupPost()
    builder.save(path)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Makes a font known to matplotlib for the time of one test."""
    manager = font_manager.fontManager
    monkeypatch.setattr(manager, "ttflist", list(manager.ttflist))

    def install(family: str, characters: str, *, postscript: bool = False) -> str:
        path = tmp_path / f"{family}.{'otf' if postscript else 'ttf'}"
        make_font(path, family=family, characters=characters, postscript=postscript)
        manager.addfont(path)
        return family

    return install


def test_plain_text_needs_the_main_typeface_only():
    face = fonts.choose("Zürich $5 ± − … ▸ × · –")
    assert face.families == (fonts.MAIN,)
    assert face.printable("Zürich $5") == "Zürich $5"


def test_the_first_family_that_has_the_characters_is_used(installed):
    family = installed("Boxes One", WIDE)
    face = fonts.choose(WIDE, families=["STIXGeneral", family])
    assert face.families == (fonts.MAIN, family)
    assert face.printable(WIDE) == WIDE
    assert not face.outlined


def test_fonts_join_when_none_has_everything(installed):
    first, second = installed("Boxes One", WIDE[0]), installed("Boxes Two", WIDE[1])
    assert fonts.choose(WIDE, families=[first, second]).families == (fonts.MAIN, first, second)


def test_what_no_font_has_becomes_its_code_point():
    face = fonts.choose("a訓𠮷", families=[])
    assert face.printable("a訓𠮷") == r"a\u8a13\U00020bb7"


def test_controls_and_overrides_become_visible_and_spaces_plain():
    face = fonts.choose("a\x1b\n\t\u202e\ud800", families=[])
    assert face.printable("a\x1b\n\t\u202e\ud800") == r"a\x1b  \u202e\ud800"


def test_a_last_resort_font_is_no_font_for_a_character():
    assert not any("Last Resort" in name for name in fonts._candidates(None))


def test_fonts_that_can_be_embedded_go_first(installed):
    hard, easy = installed("Boxes A", WIDE, postscript=True), installed("Boxes B", WIDE)
    assert fonts._candidates([hard, easy]) == [easy, hard]


def test_a_font_for_the_name_is_embedded_and_its_text_can_be_found(bare, installed):
    installed("Boxes One", WIDE)
    sweep = bare.named(WIDE)
    content = gather(results=sweep.results, analysis=sweep.analysis)
    assert "Boxes One" in content.typeface.families or content.typeface.printable(WIDE) == WIDE
    reader = pypdf.PdfReader(io.BytesIO(render(content=content)))
    assert WIDE in reader.pages[0].extract_text()


def test_a_font_without_bold_is_used_without_a_word(bare, installed, caplog):
    installed("Boxes One", WIDE)
    sweep = bare.named(WIDE)
    render(content=gather(results=sweep.results, analysis=sweep.analysis))
    assert not caplog.records


def test_postscript_outlines_are_drawn_and_not_embedded(bare, installed):
    # Type 42 cannot hold them: readers show such a font wrong or not at all.
    family = installed("Boxes A", WIDE, postscript=True)
    sweep = bare.named(f"{WIDE} run")
    content = gather(results=sweep.results, analysis=sweep.analysis)
    content = replace(content, typeface=fonts.choose(f"{WIDE} run", families=[family]))
    assert content.typeface.outlined == set(WIDE)
    reader = pypdf.PdfReader(io.BytesIO(render(content=content)))
    names = {
        str(font.get_object()["/BaseFont"])
        for page in reader.pages
        for font in page["/Resources"].get_object()["/Font"].values()
    }
    assert names
    assert not any("Boxes" in name for name in names)
    assert reader.metadata.title.startswith(WIDE)


def test_making_a_report_leaves_the_settings_of_matplotlib_alone(bare):
    before = dict(mpl.rcParams)
    render(content=gather(results=bare.results, analysis=bare.analysis))
    assert dict(mpl.rcParams) == before
