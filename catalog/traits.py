"""What of a chip is no number: what programs call it, how a profile shows it, and how its like are joined in a domain.

Each stands in the data file under the chip, with its source and mark, and is None where nothing is known.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from catalog.entries import MARKS, Number, Value
from errors.shapes import is_list

ALL = "all"
NODE = 8  # GPUs of a node whose GPUs are joined directly


@dataclass(frozen=True, kw_only=True)
class Trait(ABC):
    """Something known of a chip, where from, and how sure (see MARKS)."""

    source: str
    mark: str

    @property
    @abstractmethod
    def text(self) -> str:
        """In one line of a table."""

    @classmethod
    def read(cls, entry: str, raw: Mapping[str, Any], sources: Mapping[str, str]) -> Self:
        """From a data file, lists as tuples. Raises ValueError for what cannot be: the data files are ours."""
        known = {f.name for f in fields(cls)}
        if unknown := set(raw) - known:
            raise ValueError(f"{entry}: {cls.__name__.lower()} has no {', '.join(sorted(unknown))}")
        if raw["source"] not in sources or raw["mark"] not in MARKS:
            raise ValueError(f"{entry}: {cls.__name__.lower()}: source or mark is not listed")
        return cls(**{**{k: _frozen(v) for k, v in raw.items()}, "source": sources[raw["source"]]})


@dataclass(frozen=True, kw_only=True)
class Jax(Trait):
    """How JAX names a device of the chip."""

    device_kind: str

    @property
    def text(self) -> str:
        return self.device_kind


@dataclass(frozen=True, kw_only=True)
class Compiler(Trait):
    """What the TPU compiler calls the chip in the name of a topology, and the configuration it must be told of."""

    name: str
    config: str | None = None

    @property
    def text(self) -> str:
        return f"{self.name} ({self.config})" if self.config else self.name


@dataclass(frozen=True, kw_only=True)
class Plane(Trait):
    """What a GPU's plane in a trace tells, which names no product: vendor, compute capability, cores (several where the
    product comes with several), and memory of more than `over_gb` up to `up_to_gb` GB. `name`: as a run has it, where
    that is not the entry's."""

    vendor: str
    capability: tuple[int, int]
    cores: tuple[int, ...]
    over_gb: float
    up_to_gb: float
    name: str | None = None

    def shows(self, vendor: Value, major: Value, minor: Value, cores: Value, memory_gb: float) -> bool:
        """Whether a plane that tells this may be the chip. Older traces name no vendor: capability and cores tell."""
        return (
            vendor in (self.vendor, None)
            and (major, minor) == self.capability
            and cores in self.cores
            and self.over_gb < memory_gb <= self.up_to_gb
        )

    @property
    def text(self) -> str:
        major, minor = self.capability
        cores = " or ".join(map(str, self.cores))
        return f"{self.vendor} {major}.{minor}, {cores} cores, {self.over_gb:g} to {self.up_to_gb:g} GB"


@dataclass(frozen=True, kw_only=True)
class Wiring(Trait):
    """How GPUs of one scale-up domain are joined: by links of each GPU to each switch, or by (GPU, GPU, links); `all`
    for one link from each GPU of a node to each other.

    `name`: in names of topologies, such as h100 in h100:8. `rack`: what a rack is called, such as nvl in nvl:72.
    """

    name: str
    rack: str | None = None
    to_switches: tuple[int, ...] = ()
    direct: tuple[tuple[int, int, int], ...] | str = ()

    @property
    def kind(self) -> str:
        """nvlink (through switches), direct (each to each other) or cube mesh."""
        return "nvlink" if self.to_switches else "direct" if self.direct == ALL else "cube mesh"

    @property
    def pairs(self) -> tuple[tuple[int, int, int], ...]:
        """(GPU, GPU, links) of those that are joined directly; empty where switches join them."""
        if isinstance(self.direct, str):
            return tuple((a, b, 1) for a in range(NODE) for b in range(a + 1, NODE))
        return self.direct

    @property
    def text(self) -> str:
        if self.to_switches:
            return f"{self.name}: {'+'.join(map(str, self.to_switches))} links to {len(self.to_switches)} switches"
        return f"{self.name}: {self.kind}, {sum(links for *_, links in self.pairs)} links"


TRAITS: dict[str, tuple[type[Trait], str, str]] = {  # field of a chip: what it is, its unit and meaning
    "jax": (Jax, "name", "what JAX calls a device"),
    "compiler": (Compiler, "name", "what the TPU compiler calls it"),
    "plane": (Plane, "stats", "how a GPU's plane in a trace shows it"),
    "wiring": (Wiring, "links", "how its like are joined in a domain"),
}


def read_traits(entry: str, raw: Mapping[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    """The traits of one entry of a data file, by field, each of its kind in TRAITS; unknown ones are left out."""
    return {k: kind.read(entry, raw[k], sources) for k, (kind, *_) in TRAITS.items() if k in raw}


def trait_rows(entry: str, traits: Mapping[str, Trait | None]) -> list[dict[str, Value]]:
    """One flat row for each, for tables, as of numbers."""
    return [
        {
            "entry": entry,
            "key": key,
            "meaning": TRAITS[key][2],
            **Number(value=t.text, unit=TRAITS[key][1], source=t.source, mark=t.mark).as_json(),
        }
        for key, t in traits.items()
        if t is not None
    ]


def traits_as_json(traits: Mapping[str, Trait | None]) -> dict[str, Any]:
    return {key: t and asdict(t) for key, t in traits.items()}


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if is_list(value) else value
