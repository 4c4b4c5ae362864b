"""Runs the compiled code once, so that the first download need not wait for its compilation."""

import numpy as np

from app.timeline.perfetto.wire import MOST_BYTES, written


def warm() -> None:
    """An event with all there is."""
    one, zero = np.ones(1, np.int64), np.zeros(1, np.int64)
    out, spare = np.zeros(2 * MOST_BYTES, np.uint8), np.zeros(MOST_BYTES, np.uint8)
    facts = np.frombuffer(b"\0", np.uint8)
    first = np.array([0, 1], np.int64)
    written(out, spare, one, one, np.zeros(1, bool), 1, one, one, one, one, one, one, facts, first, zero)
