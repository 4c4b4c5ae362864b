"""Which load of a run a page is about: all requests together, or one load. Kept in the address."""

from collections.abc import Sequence

from analyzers.serving.latency.summary import Load
from app import format as fmt
from app.components.model_picker import pick

EVERY = ""
MOST = 200


def load_choice(loads: Sequence[Load], everything: str, name: str = "stage") -> str | None:
    """A list of the loads where there are several; the one chosen, or None for `everything`, what is shown else."""
    named = [load for load in loads if load.stage is not None][:MOST]
    if len(loads) < 2 or not named:
        return None
    texts = {EVERY: everything} | {load.stage: _text(load) for load in named}
    return pick("Load", name, texts, EVERY, width=420) or None


def _text(load: Load) -> str:
    rate = load.output_tokens_per_s
    return str(load.stage) + (f" · {fmt.number(rate)} output tokens/s" if rate is not None else "")
