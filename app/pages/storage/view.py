"""Figures and tables of the page: what a step waits, what each part takes, what a job needs, published rows."""

import pandas as pd

from app.components.figures_row import Figure
from app.whatif.storage.answers import StorageAnswer
from app.whatif.storage.cases import worked
from app.whatif.storage.wording import case_said, words
from errors import format as fmt


def figures(result: StorageAnswer) -> list[Figure]:
    """Up to five: the wait, its share or price, a batch, a step, and what the store must give."""
    basis = "modelled" if result.pipe is not None else "measured"
    lost = fmt.share(result.share)
    if result.chip_hours is not None:
        lost = fmt.chip_time(result.chip_hours * 3600) if result.usd is None else fmt.usd(result.usd)
    shown = [
        Figure("Input wait a step", fmt.duration(result.waits.wait_s), _sure(result), "modelled"),
        Figure("Lost to waiting", lost, f"{fmt.share(result.share)} of all chip time.", "modelled"),
        Figure("Time per batch", fmt.duration(result.batch_s), "On chips that take no time.", basis),
    ]
    if (n := result.needed) is not None:
        rate = f"{fmt.size(n.store_bytes_per_s)}/s"
        asks = f"{fmt.number(n.requests_per_s)} requests a second of all hosts, so that nobody waits."
        flying = "Of a host, on average, so that it gets a batch each step (Little's law)."
        shown += [
            Figure("Asked of the store", rate, asks, "modelled"),
            Figure("Requests in flight", fmt.number(n.in_flight), flying, "modelled"),
        ]
    return shown


def _sure(result: StorageAnswer) -> str:
    return f"On average, ± {fmt.duration(result.waits.error_s)} by the steps that were walked."


def evidence(result: StorageAnswer) -> pd.DataFrame:
    """What a terminal prints: parts, needs, an epoch, a save."""
    table = words(result).table
    return pd.DataFrame(table.rows, columns=list(table.head))


def published_notes() -> list[tuple[str, str]]:
    """How well a latency and a bandwidth tell each published series, and what is to be known of it."""
    return [(case_said(case) if case["fit"] else f"{case['title']}.", case["note"]) for case in worked()]


def published_rows() -> pd.DataFrame:
    """Every published reading beside what a latency and a bandwidth make of it."""
    rows = [
        {
            "series": case["title"],
            "file_bytes": row["file_bytes"],
            "at_once": row["at_once"],
            "measured_s": row["measured_s"],
            "modelled_s": row["modelled_s"],
            "measured_bytes_per_s": row["measured_bytes_per_s"],
            "modelled_bytes_per_s": row["modelled_bytes_per_s"],
            "error_share": row["error"],
            "held_out_error_share": row["held_out_error"],
            "source": case["source"],
        }
        for case in worked()
        for row in case["rows"]
    ]
    return pd.DataFrame(rows)
