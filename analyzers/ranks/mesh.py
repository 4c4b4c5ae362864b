"""Which mesh axes a group of devices runs along, and which network it has to cross."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analyzers.base import Facts, fact
from analyzers.subject import chip_of, slices_of
from catalog.chips import Chip

UNKNOWN = "?"  # a member of a group that is not known
SCALE_UP, DATA_CENTRE = "scale-up", "data centre"


@dataclass(frozen=True)
class Link:
    """What one device can send at most: `bytes_per_s` one way over `network`; `words` says how it was reckoned."""

    network: str
    bytes_per_s: float
    words: str


def mesh_of(facts: Facts) -> dict[str, int] | None:
    """Mesh axes with their sizes, in mesh order: devices are numbered row by row. None where the facts do not tell."""
    said = fact(facts, "parallelism")
    if not isinstance(said, Mapping) or not said:
        return None
    whole = {str(k): int(v) for k, v in said.items() if isinstance(v, int | float) and v >= 1 and int(v) == v}
    return whole if len(whole) == len(said) else None


def members(text: str | None) -> tuple[int, ...]:
    """The numbers of a group as `collectives` holds them; empty where they are not all known."""
    parts = text.split(",") if text else []
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()


def size_of(text: str | None) -> int | None:
    """How many take part in a group; None where that is not told."""
    return text.count(",") + 1 if text and text != UNKNOWN else None


def axis_of(group: tuple[int, ...], mesh: Mapping[str, int] | None) -> str | None:
    """The axes along which the members of `group` differ, joined by +. None where the group is not all of them.

    Mesh axes count by a program's own order of devices, so `group` holds places in it, not ranks.
    """
    if mesh is None or len(group) < 2 or min(group) < 0 or max(group) >= int(np.prod(list(mesh.values()))):
        return None
    at = np.stack(np.unravel_index(np.array(group), tuple(mesh.values())))
    varying = [(name, size) for (name, size), row in zip(mesh.items(), at, strict=True) if len(set(row.tolist())) > 1]
    if int(np.prod([size for _, size in varying])) != len(set(group)):
        return None
    return "+".join(name for name, _ in varying)


def ranks_along(axis: str, mesh: Mapping[str, int]) -> tuple[int, ...]:
    """Ranks of the first group along `axis` (axes joined by +); empty for an axis that the mesh does not have."""
    names = axis.split("+")
    if not all(name in mesh for name in names):
        return ()
    ranks = np.arange(int(np.prod(list(mesh.values())))).reshape(tuple(mesh.values()))
    return tuple(int(r) for r in ranks[tuple(slice(None) if name in names else 0 for name in mesh)].ravel())


class Links:
    """The network of a run, by what the catalogue knows of its chip."""

    def __init__(self, facts: Facts):
        self.chip: Chip | None = chip_of(facts)
        known = self.chip.value("jax_devices_per_chip") if self.chip else None
        self.devices_per_chip = int(fact(facts, "devices_per_chip") or known or 1)
        self.slices = slices_of(facts) or 1
        self.devices = int(fact(facts, "chips") or 0) * self.devices_per_chip

    def of(self, group: tuple[int, ...]) -> Link | None:
        """The link that bounds a collective among these ranks (empty: not known, taken as within one network).

        Devices are taken to be numbered slice by slice, or host by host. None where the catalogue lacks the number.
        """
        if self.chip is None:
            return None
        domain = self._domain()
        if domain and len({rank // domain for rank in group}) > 1:
            rate = self.chip.value("dcn_oneway_bytes_per_s")
            words = f"data-centre network of {self.chip.name}, one chip's share, one way"
            return Link(DATA_CENTRE, float(rate) / self.devices_per_chip, words) if rate else None
        links, rate = self.chip.value("links_per_chip"), self.chip.value("link_oneway_bytes_per_s")
        if not links or not rate:
            return None
        each = f"{links:g} links of {rate / 1e9:g} GB/s one way"
        shared = f", shared by {self.devices_per_chip} devices" if self.devices_per_chip > 1 else ""
        return Link(SCALE_UP, links * rate / self.devices_per_chip, f"all {each} of a {self.chip.name}{shared}")

    def among(self, group: tuple[int, ...], size: int | None) -> Link | None:
        """The link that bounds a collective of `size` ranks (None: all of the job), of which `group` names them where
        they are known. None where unnamed ranks may lie within one network or across several."""
        domain = self._domain()
        widest = size or self.devices
        if group or not domain or max(self.devices, widest) <= domain:
            return self.of(group)
        return self.of((0, widest - 1)) if widest > domain else None

    def one_link(self) -> float | None:
        """Bytes/s one way of a single link."""
        rate = self.chip.value("link_oneway_bytes_per_s") if self.chip else None
        return float(rate) if rate else None

    def _domain(self) -> int | None:
        """Devices that the scale-up network joins; None: all of them."""
        if self.slices > 1 and self.devices:
            return max(self.devices // self.slices, 1)
        chips = self.chip.value("scaleup_domain_chips") if self.chip and self.chip.vendor != "Google" else None
        return int(chips) * self.devices_per_chip if chips else None
