"""A job of the server followed from a page: begun by a POST, its progress shown, cancelled on a click."""

from pathlib import Path
from typing import Any

from app.components.browser import component

_follow = component("chipledger_follow", Path(__file__).parent / "follow")


def follow(key: str, address: str, body: dict[str, Any] | None, job: str = "") -> tuple[str | None, str | None, bool]:
    """Begin a job with POST `address` once for each `key`, or go on with `job`.

    Returns (id of the job just begun, id of the run it just made, whether it just failed). What was said of a failure
    stays on the page.
    """
    told = _follow(
        key="follow",
        data={"key": key, "address": address, "body": body, "job": job},
        on_begun_change=lambda: None,
        on_done_change=lambda: None,
        on_failed_change=lambda: None,
    )
    return told.begun, told.done, bool(told.failed)
