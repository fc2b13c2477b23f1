"""The words of a report, read back from its PDF."""

import pypdf


def text(page: pypdf.PageObject) -> str:
    """The text of a page in one line: wrapping is not what these tests are about."""
    return " ".join(page.extract_text().split())


def whole_text(reader: pypdf.PdfReader) -> str:
    return " ".join(text(page) for page in reader.pages)


def page_named(reader: pypdf.PdfReader, title: str) -> str:
    return next(found for page in reader.pages if title in (found := text(page)))
