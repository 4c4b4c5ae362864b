"""What `whatif cost` can be asked."""

from dataclasses import dataclass

from errors.numbers import COUNT, Number
from errors.options import Option

TOKENS = Number(1, 1e18)
DAYS = Number(1e-3, 1e5)
RATE_SHARE = Number(1e-6, 1)  # a job of which less is of use was mistyped
DEVELOPERS = Number(1, 1e9, whole=True)
BUDGET = Number(0, 1e15, above=True)
PRECISIONS = ("bf16", "fp8", "int8", "fp4", "fp16")
SEQ = 8192  # where none is named


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of OPTIONS. model, on, tokens, and chips or days must be given; of the rest None: the default that
    OPTIONS tell, or no such limit."""

    model: str | None = None
    on: str | None = None
    tokens: float | None = None
    chips: str | None = None
    days: float | None = None
    usd: float | None = None
    mfu: float | None = None
    goodput: float | None = None
    seq: int | None = None
    precision: str = PRECISIONS[0]
    price: str | None = None
    developers: int | None = None


OPTIONS: tuple[Option, ...] = (
    Option("model", str, None, "a model of the catalogue", form="NAME"),
    Option("on", str, None, "chips to try, by comma: v5p,h100,b200", label="Chips to try", form="CHIPS"),
    Option("tokens", TOKENS, None, "tokens to train on, such as 15e12", "tokens", "Tokens to train on"),
    Option(
        "chips",
        str,
        None,
        "how many chips, by comma: 2048,4096 (default: as many as --days asks for)",
        label="Numbers of chips",
        form="N",
    ),
    Option("days", DAYS, None, "the deadline, in days from the first step", "d", "Deadline (days)"),
    Option("usd", BUDGET, None, "the budget, in dollars", "USD", "Budget (USD)"),
    Option(
        "mfu",
        RATE_SHARE,
        None,
        "model FLOPs utilisation by causal FLOPs, 0 to 1 (default: that of published runs of such models on the chip, "
        "as a range)",
        label="MFU",
    ),
    Option(
        "goodput",
        RATE_SHARE,
        None,
        "share of the chips' time that becomes kept steps, 0 to 1 (default: 1, nothing is lost)",
        label="Goodput",
    ),
    Option("seq", COUNT, None, f"tokens in a sequence (default: {SEQ})", "tokens", "Sequence length"),
    Option("precision", PRECISIONS, PRECISIONS[0], "of the matrix products, which sets the peak"),
    Option(
        "price",
        str,
        None,
        "dollars per chip-hour, by comma: v5p=4.2,h100=3; without prices nothing is told of dollars",
        label="Prices, dollars per chip-hour",
        form="CHIP=USD",
    ),
    Option(
        "developers",
        DEVELOPERS,
        None,
        "how many share the chips: tells kept model FLOPs a month for each of them",
        label="Active developers",
    ),
)
