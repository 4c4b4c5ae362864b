"""A report as PDF: its HTML, printed by a Chromium of this machine that reaches no network."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from app.cli.commands.doctor import chromium
from errors import QuestionError

PATIENCE_S = 120
DRAWING_MS = 60_000  # of the page's own clock, which stands still while nothing is waited for
ELSE = "Open the HTML of the report in a browser and print it there"


def pdf(page: bytes) -> bytes:
    """The printed page. Raises QuestionError where there is no Chromium, or it does not print."""
    path = chromium()
    if path is None:
        raise QuestionError(
            "no Chromium is on this machine to print a PDF with",
            expected="Chromium or Chrome on the PATH",
            advice=f"Install the package chromium. {ELSE} otherwise.",
        )
    with tempfile.TemporaryDirectory(prefix="chipledger-report-", ignore_cleanup_errors=True) as folder:
        source, target = Path(folder) / "report.html", Path(folder) / "report.pdf"
        source.write_bytes(page)
        said = _run(_command(path, source, target, Path(folder) / "profile"), Path(folder) / "said")
        if not target.is_file() or not target.read_bytes().startswith(b"%PDF"):
            raise QuestionError("Chromium printed no PDF", where=path, expected=said or "a PDF", advice=f"{ELSE}.")
        return target.read_bytes()


def _command(path: str, source: Path, target: Path, profile: Path) -> list[str]:
    """The sandbox of Chromium refuses to work for root; what it opens is ours and may run nothing but the drawing."""
    return [
        path,
        "--headless",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={profile}",
        "--no-pdf-header-footer",
        f"--virtual-time-budget={DRAWING_MS}",
        f"--print-to-pdf={target}",
        source.as_uri(),
    ]


def _run(command: list[str], said_in: Path) -> str:
    """Wait for it; what it said last, empty where it said nothing. It speaks into a file: what it started and left
    behind would hold a pipe open for ever."""
    with said_in.open("wb") as told:
        started = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=told, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            started.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
            return f"an answer within {PATIENCE_S} s"
    lines = said_in.read_text(errors="replace").strip().splitlines()
    return f"a PDF, and it said: {lines[-1][-200:]}" if lines else ""
