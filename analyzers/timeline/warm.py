"""Runs the timeline's compiled code once, so that the first question need not wait for its compilation."""

import numpy as np

from analyzers.timeline.pyramid import LEAST_EVENTS, pyramid, rows


def warm() -> None:
    """Rows and bins of made events."""
    lane, start, dur = (
        np.zeros(LEAST_EVENTS, np.int64),
        np.arange(LEAST_EVENTS, dtype=np.int64),
        np.ones(LEAST_EVENTS, np.int64),
    )
    order, row = rows(lane, start, dur)
    pyramid(row, start[order], dur[order], np.zeros(LEAST_EVENTS, np.uint8), 1)
