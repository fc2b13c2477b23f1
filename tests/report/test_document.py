import re
import subprocess
import sys
from pathlib import Path

import pypdf
import pytest
from pdf_text import text

from cgratio.report import fonts, style
from cgratio.report.content import gather
from cgratio.report.document import render, write_report


def used_fonts(reader: pypdf.PdfReader) -> list[pypdf.generic.DictionaryObject]:
    resources = [page["/Resources"].get_object() for page in reader.pages]
    return [font.get_object() for found in resources for font in found.get("/Font", {}).values()]


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


def test_reports_need_neither_torch_nor_a_display():
    code = (
        "import sys, cgratio.report.document; "
        "bad = {'torch', 'envpool', 'pynvml', 'matplotlib.pyplot', 'cgratio.trainer', 'cgratio.telemetry'}; "
        "sys.exit(', '.join(sorted(bad & sys.modules.keys())) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
