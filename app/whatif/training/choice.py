"""A layout with its days and dollars, and whether it keeps the limits that were asked for."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.whatif.training.asked import Asked
from app.whatif.training.limits import Kept, Range, kept
from app.whatif.training.slices import slice_name
from simulators.training.end_to_end import Band, EndToEnd
from simulators.training.front import front
from simulators.training.plan import Planned


@dataclass(frozen=True)
class Choice:
    """A layout with its days and dollars: low, likely and high; None without tokens or a price.

    `lived`: its goodput and the tokens of a day that count; `limits`: whether each that was asked for is kept; `price`:
    dollars of a chip-hour; `front`: whether no other is at most as long and as dear (None: dollars are not known).
    """

    planned: Planned
    lived: EndToEnd
    days: Range | None
    usd: Range | None
    limits: dict[str, Kept]
    price: float | None = None
    front: bool | None = None

    @property
    def goodput(self) -> float:
        return self.lived.goodput.likely

    @property
    def meets(self) -> dict[str, bool]:
        """Of each limit, whether it is likely to be kept."""
        return {name: limit.likely for name, limit in self.limits.items()}

    @property
    def feasible(self) -> bool:
        return all(self.meets.values())

    def to_dict(self) -> dict[str, Any]:
        p = self.planned
        return {
            "chip": p.chip,
            "chips": p.chips,
            "topology": slice_name(p.chip, p.chips),
            "layout": p.layout,
            "step_s": p.step_s,
            "tflops_per_s_per_chip": p.flops_per_s_per_chip / 1e12,
            "mfu": p.mfu,
            "tokens_per_s_per_chip": p.tokens_per_s_per_chip,
            "bytes_per_chip": p.bytes_per_chip,
            "fits": True,
            "tight": p.tight,
            "bytes_left_per_chip": p.bytes_left,
            "layers_recomputed": p.recomputed,
            "goodput": self.goodput,
            "goodput_band": asdict(self.lived.goodput),
            "tokens_per_day": asdict(self.lived.tokens_per_day),
            "days": self.days and self.days[1],
            "usd": self.usd and self.usd[1],
            "band": {"low": p.low_s, "high": p.high_s},
            "published_runs": p.published,
            "days_range": _ends(self.days),
            "usd_range": _ends(self.usd),
            "meets": {name: limit.to_dict() for name, limit in self.limits.items()},
            "front": self.front,
            "basis": "modelled",
        }


def _ends(values: Range | None) -> dict[str, float] | None:
    return None if values is None else {"low": values[0], "high": values[2]}


def choice_of(planned: Planned, lived: EndToEnd, asked: Asked, price: float | None) -> Choice:
    """`lived`: what `lives.told` has of the layout; `price`: dollars of a chip-hour."""
    if lived.days is None:
        return Choice(planned, lived, None, None, {}, price)
    days, usd = _range(lived.days), lived.usd and _range(lived.usd)
    return Choice(planned, lived, days, usd, kept({"days": asked.days, "usd": asked.usd}, days, usd), price)


def _range(band: Band) -> Range:
    return band.low, band.likely, band.high


def fronted(choices: Sequence[Choice]) -> list[Choice]:
    """The same with their place on the front of days and dollars, of those that have both."""
    told = [c for c in choices if c.days is not None and c.usd is not None]
    on = dict(zip(map(id, told), front([(c.days[1], c.usd[1]) for c in told if c.days and c.usd]), strict=True))
    return [replace(c, front=on.get(id(c))) for c in choices]
