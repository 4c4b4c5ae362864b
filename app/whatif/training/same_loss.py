"""What the batch of a plan costs in tokens: the critical batch size, and the days to a loss rather than to a count."""

from dataclasses import dataclass
from typing import Any

from app.whatif.training.limits import Range
from errors import format as fmt
from simulators.training.critical_batch import Band, critical_batch

TOLD_FROM = 0.1  # more tokens at the most: less is not worth a sentence in the verdict


@dataclass(frozen=True)
class SameLoss:
    """The batch of a plan beside the critical one. `more`: the least and the most share of tokens beyond those of small
    batches to the same loss."""

    batch_tokens: int
    band: Band
    more: tuple[float, float]

    @property
    def place(self) -> str:
        """`below`, `within` or `beyond` the band."""
        return self.band.place(self.batch_tokens)

    def to_dict(self, days: Range | None = None, usd: Range | None = None) -> dict[str, Any]:
        """With the days and dollars of a choice to the loss that small batches reach with the tokens asked for."""
        return {
            "batch_tokens": self.batch_tokens,
            "low": self.band.low,
            "high": self.band.high,
            "place": self.place,
            "more_tokens": {"low": self.more[0], "high": self.more[1]},
            "days_to_same_loss": self._longer(days),
            "usd_to_same_loss": self._longer(usd),
            "estimates": [dict(vars(e)) for e in self.band.estimates],
            "basis": "published fits, extrapolated",
        }

    def _longer(self, values: Range | None) -> dict[str, float] | None:
        """From the low end with the least more tokens to the high end with the most."""
        if values is None:
            return None
        return {"low": values[0] * (1 + self.more[0]), "high": values[2] * (1 + self.more[1])}


def same_loss(tokens: float | None, batch_tokens: int) -> SameLoss | None:
    """None without tokens: how large a batch may be depends on how long a job trains."""
    if tokens is None:
        return None
    band = critical_batch(tokens)
    return SameLoss(batch_tokens, band, band.more_tokens(batch_tokens))


def told(found: SameLoss) -> str:
    """What the batch costs, in two sentences at most."""
    low, high = (fmt.number(v / 1e6) for v in (found.band.low, found.band.high))
    least, most = (fmt.share(v) if v < 10 else f"{fmt.number(v)} times" for v in found.more)
    said = (
        f"A step of {fmt.number(found.batch_tokens / 1e6)} million tokens against a critical batch of {low} to {high} "
        f"million (published fits, extrapolated): {least} to {most} more tokens than small batches take to the same "
        "loss."
    )
    if found.place == "beyond":
        said += " Beyond it no batch, however large, halves the steps once more."
    return said
