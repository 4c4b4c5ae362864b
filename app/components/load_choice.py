"""Which load of a run a page is about: all requests together, or one load. Kept in the address."""

from collections.abc import Sequence

from analyzers.serving.latency import STAGE
from analyzers.serving.latency.summary import Load
from app.components.option import control
from errors import format as fmt

MOST = 200


def load_choice(loads: Sequence[Load], everything: str) -> str | None:
    """A list of the loads where there are several, in the head of a page; the one chosen, or None for `everything`,
    what is shown else."""
    named = [load for load in loads if load.stage is not None][:MOST]
    if len(loads) < 2 or not named:
        return None
    texts = {load.stage: _text(load) for load in named}
    return control(STAGE, texts=texts, unset=everything, hidden=True, width=300)


def _text(load: Load) -> str:
    rate = load.output_tokens_per_s
    return str(load.stage) + (f" · {fmt.number(rate)} output tokens/s" if rate is not None else "")
