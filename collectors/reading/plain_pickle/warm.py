"""Compiles the look through a pickle, so that the first dump need not."""

import pickle

from collectors.reading.plain_pickle import loads


def warm() -> None:
    """Reads a small pickle."""
    loads(pickle.dumps({"version": "2.9", "entries": [1]}, 2))
