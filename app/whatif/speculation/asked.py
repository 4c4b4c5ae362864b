"""What `whatif speculation` can be asked."""

from dataclasses import dataclass

from errors.numbers import COST, FROM_ZERO, SHARE, Number
from errors.options import Option

DRAFT = Number(1, 1000, whole=True)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS; None: `acceptance` must be given, `draft` is the best, model and chip are not known."""

    acceptance: float | None = None
    draft: int | None = None
    cost: float = 0.05
    model: str | None = None
    chip: str | None = None
    context: int = 0


OPTIONS: tuple[Option, ...] = (
    Option(
        "acceptance",
        SHARE,
        None,
        "chance that a draft token is accepted where all before it were, 0 to 1",
        label="Chance of acceptance",
        form="SHARE",
    ),
    Option("draft", DRAFT, None, "draft tokens (default: the best number)", "tokens", "Draft tokens", form="K"),
    Option(
        "cost",
        COST,
        0.05,
        "time of a draft step by that of a step of the model",
        label="Cost of a draft step",
        form="RATIO",
    ),
    Option("model", str, None, "a model of the catalogue, for the batch up to which it pays", form="NAME"),
    Option("chip", str, None, "a chip of the catalogue", form="NAME"),
    Option("context", FROM_ZERO, 0, "tokens that a sequence holds at a step", "tokens", form="TOKENS"),
)
