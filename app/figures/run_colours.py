"""A colour for each of several runs: one run is drawn alike in every picture of a page."""

from collections.abc import Sequence

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#B8860B",
    "#7F6BC4",
    "#4AA3D8",
    "#C0504D",
    "#6B9A3A",
    "#9A7B66",
)
"""Apart for whoever sees colours otherwise too, and readable on white and on near-black."""
DASHES = ("solid", "dash", "dot")


def looks(ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """(colour, dash) by run, in the order of ids whatever the order of the runs: past the last colour dashes tell them
    apart."""
    return {
        run_id: (COLOURS[n % len(COLOURS)], DASHES[n // len(COLOURS) % len(DASHES)])
        for n, run_id in enumerate(sorted(ids))
    }
