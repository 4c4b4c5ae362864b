"""The page before XProf: says plainly why it does not open, or has nothing to print, and where the answers are."""

import html
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from starlette.responses import HTMLResponse

from app.pages.all import pages_of
from errors import ChipledgerError
from runs.run import Run

REASONS: dict[str, tuple[int, str, str]] = {  # status, heading, what to do
    "unknown": (404, "There is no such run", "Open one in the library."),
    "no trace": (
        404,
        "This run has no profile",
        "XProf reads traces (*.xplane.pb). Add one to the run's inputs and ingest them together.",
    ),
    "no accelerator": (
        200,
        "XProf has nearly nothing to print about this trace",
        "No accelerator was seen in it, and XProf's pages are about accelerators: all but its trace viewer stay empty.",
    ),
    "missing": (
        503,
        "XProf is not installed on this server",
        "Install it where the server runs: pip install 'chipledger[xprof]'. Nothing else here needs it.",
    ),
    "gone": (
        409,
        "The original trace cannot be found",
        "A run keeps tables, not its inputs, and XProf reads the original. It was moved, changed, came out of an "
        "archive, or was ingested before its place was noted. Ingest the same files once more, unpacked: it stays "
        "the same run, and their place is noted.",
    ),
    "elsewhere": (
        403,
        "A page of another site led here",
        "XProf is started for who asks for it here, not for links, pictures and scripts of other sites.",
    ),
    "failed": (502, "XProf did not start", "The other pages do not depend on it."),
}
STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


class Closed(ChipledgerError):
    """XProf cannot be opened; `reason` is one of REASONS, `details` what else there is to say."""

    def __init__(self, reason: str, details: Sequence[str] = ()):
        super().__init__(REASONS[reason][1])
        self.reason = reason
        self.details = tuple(details)


def door_page(run: Run | None, closed: Closed, here: str = "") -> HTMLResponse:
    """The page for a run, or for none. `here`: the path that was asked for, to be asked for again from this page."""
    status, heading, advice = REASONS[closed.reason]
    parts = [f"<h1>{html.escape(heading)}</h1>", f"<p>{html.escape(advice)}</p>"]
    if closed.details:
        more = f" and {len(closed.details) - 10:,} more" if len(closed.details) > 10 else ""
        parts.append(f"<p class='detail'>{html.escape(', '.join(closed.details[:10]))}{more}</p>")
    if here:
        parts.append(f"<p><a href='{html.escape(quote(here))}'>Open XProf from here</a></p>")
    if run is not None:
        name, at = html.escape(run.manifest.name), quote(run.run_id)
        if closed.reason == "no accelerator":
            parts.append(f"<p><a href='/xprof/{at}?anyway=1'>Open XProf all the same</a></p>")
        links = "".join(
            f"<li><a href='/{p.path}?run={at}'>{html.escape(f'{p.title}: {p.asks}')}</a></li>" for p in pages_of(run)
        )
        parts.append(f"<p>What Chipledger itself says of <b>{name}</b>:</p><ul>{links}</ul>")
    parts.append("<p><a href='/'>All runs</a></p>")
    page = (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>XProf · Chipledger</title>"
        f"<style>{STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>"
    )
    return HTMLResponse(page, status_code=status)
