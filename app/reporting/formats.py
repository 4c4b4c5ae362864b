"""In which formats a report is written, and which one a file's name asks for. Nothing heavy is loaded to know it."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from errors import QuestionError
from errors.options import SWITCH, Option

if TYPE_CHECKING:
    from app.reporting.document import Document


@dataclass(frozen=True)
class Format:
    """A format. `endings` of files; `served`: a server gives it out too, for it starts no browser to make it."""

    name: str
    endings: tuple[str, ...]
    media: str
    served: bool = True


HTML = Format("html", (".html", ".htm"), "text/html; charset=utf-8")
MARKDOWN = Format("markdown", (".md", ".markdown"), "text/markdown; charset=utf-8")
PDF = Format("pdf", (".pdf",), "application/pdf", served=False)
FORMATS = (HTML, MARKDOWN, PDF)
AS = Option("format", tuple(f.name for f in FORMATS if f.served), HTML.name, "as what the report is given")
TAKEN = Option("download", SWITCH, False, "as a file to be kept, in place of a page to be looked at")


def named(name: str) -> Format:
    return next(f for f in FORMATS if f.name == name)


def asked_for(file: str, name: str | None) -> Format:
    """By its name where one is given, else by the ending of the file. Raises QuestionError for an ending of none."""
    if name is not None:
        return named(name)
    ending = PurePath(file).suffix.lower()
    for one in FORMATS:
        if ending in one.endings:
            return one
    known = ", ".join(f.endings[0] for f in FORMATS)
    raise QuestionError(
        f"a file that ends with {ending[:20]!r}" if ending else "a file without an ending",
        where=file[-80:],
        expected=f"one of {known}",
        advice="Or say which with --format.",
    )


def written(document: "Document", format: Format) -> bytes:
    """The document in this format. Raises QuestionError for a PDF where no browser can print one."""
    if format is MARKDOWN:
        from app.reporting.writers.markdown import markdown

        return markdown(document)
    from app.reporting.writers.html import html

    if format is HTML:
        return html(document)
    from app.reporting.writers.pdf import pdf

    return pdf(html(document))
