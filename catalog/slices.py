"""TPU slices as data: which shapes a generation allows, what they are called, and on which machines they run.

Only facts and look-up; distances, wraps and placement belong to the topology simulator.
"""

import re
from dataclasses import asdict, dataclass
from functools import cache
from math import prod
from typing import Any

from catalog.entries import Number, Value, parse_numbers, read_data, rows_of
from catalog.lookup import Index, key, shown
from errors import QuestionError

LONGEST_NAME = 100

UNITS: dict[str, tuple[str, str]] = {
    "pod_chips": ("chips", "chips of the largest machine"),
    "largest_slice": ("chips along each axis", "largest slice that can be scheduled"),
    "cube_chips": ("chips", "chips of the block that optical switches join"),
    "cubes": ("cubes", "such blocks in the largest machine"),
    "active_chips": ("chips", "chips of the largest machine that work at one time"),
    "board_chips": ("chips", "chips on a board"),
    "group_boards": ("boards", "boards in a group"),
    "pod_groups": ("groups", "groups in the largest machine"),
    "chips": ("chips", "chips of the virtual machine"),
    "vcpus": ("vCPUs", "virtual CPUs of the virtual machine"),
    "memory_gb": ("GB as printed", "host memory of the virtual machine; the maker's GB may be GiB"),
}

WRAPS: dict[str, str] = {
    "full_pod": "an axis is a ring only in the full pod; a smaller slice is a mesh",
    "axis_of_16": "an axis is a ring only where it has 16 chips; a shorter one is a line",
    "cube": "every axis is a ring in slices of at least one 4x4x4 cube; a smaller slice is a mesh",
    "boardfly": "no torus: rings of 4 chips, boards fully connected in groups, groups joined by optical switches",
}


@dataclass(frozen=True, kw_only=True)
class MachineType:
    """A virtual machine with TPU chips."""

    name: str
    family: str
    numbers: dict[str, Number]

    @property
    def chips(self) -> int:
        return int(self.numbers["chips"].figure or 0)


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A shape that documentation or xpk lists, and the machine types that can build it."""

    shape: str
    machines: tuple[str, ...]
    source: str
    mark: str

    @property
    def chips(self) -> int:
        return prod(int(n) for n in self.shape.split("x"))


@dataclass(frozen=True, kw_only=True)
class XpkTypes:
    """The slices that xpk creates, as PREFIX-SHAPE; it knows one shape for each number of chips and refuses others."""

    prefix: str
    topologies: tuple[str, ...]
    source: str
    mark: str


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """The software version that a slice made through the Cloud TPU API starts with."""

    version: str
    source: str
    mark: str


@dataclass(frozen=True, kw_only=True)
class Noted:
    """That something holds of a family: who says so."""

    source: str
    mark: str


@dataclass(frozen=True, kw_only=True)
class SliceFamily:
    """The rule for slices of one chip.

    Legal shapes are `small_topologies`, and with `axis_multiple` m every shape whose axes are multiples of m,
    written in ascending order, up to `numbers["pod_chips"]`; without it exactly the listed `topologies`.
    `axes` None: no torus. `twistable` None: not known. `accelerator_prefixes` name slices as prefix-count, where
    the count is chips times `count_per_chip` (None: such names do not exist). `xpk` None: xpk does not create them;
    `tpu_runtime` None: no version is known, or the Cloud TPU API does not create them. `ici_resiliency`: where
    documentation tells of it. `lone_on_gke`: where it is known that GKE does not join several such slices.
    """

    name: str
    chip: str
    axes: int | None
    wrap: str
    small_topologies: tuple[str, ...]
    axis_multiple: int | None
    twistable: bool | None
    accelerator_prefixes: tuple[str, ...]
    count_per_chip: int | None
    gke_accelerators: tuple[str, ...]
    xpk: XpkTypes | None
    tpu_runtime: Runtime | None
    ici_resiliency: Noted | None
    lone_on_gke: Noted | None
    numbers: dict[str, Number]
    machines: tuple[MachineType, ...]
    topologies: tuple[Topology, ...]
    notes: tuple[str, ...]

    def count(self, key: str) -> int:
        """The whole number called `key`. Raises ValueError where it is none or not known: a defect of the data."""
        value = self.numbers[key].figure
        if value is None:
            raise ValueError(f"{self.name}: {key} is not known")
        return int(value)

    def accelerator_type(self, chips: int) -> str | None:
        """The usual name of a slice of so many chips, such as v5p-128 for 64."""
        return f"{self.accelerator_prefixes[0]}-{chips * self.count_per_chip}" if self.count_per_chip else None

    def rows(self) -> list[dict[str, Value]]:
        """One row for each number of the family and of its machine types."""
        meanings = {k: m for k, (_, m) in UNITS.items()}
        rows = rows_of(self.name, self.numbers, meanings)
        for machine in self.machines:
            rows += rows_of(f"{self.name} {machine.name}", machine.numbers, meanings)
        return rows

    def as_json(self) -> dict[str, Any]:
        """What `catalog slices NAME --json` prints for a family."""
        return {
            "name": self.name,
            "chip": self.chip,
            "axes": self.axes,
            "wrap": self.wrap,
            "wrap_meaning": WRAPS[self.wrap],
            "small_topologies": list(self.small_topologies),
            "axis_multiple": self.axis_multiple,
            "twistable": self.twistable,
            "accelerator_prefixes": list(self.accelerator_prefixes),
            "count_per_chip": self.count_per_chip,
            "gke_accelerators": list(self.gke_accelerators),
            "xpk": self.xpk and {**asdict(self.xpk), "topologies": list(self.xpk.topologies)},
            "tpu_runtime": self.tpu_runtime and asdict(self.tpu_runtime),
            "ici_resiliency": self.ici_resiliency and asdict(self.ici_resiliency),
            "lone_on_gke": self.lone_on_gke and asdict(self.lone_on_gke),
            "numbers": {k: n.as_json() for k, n in self.numbers.items()},
            "machines": {m.name: {k: n.as_json() for k, n in m.numbers.items()} for m in self.machines},
            "topologies": [
                {
                    "topology": t.shape,
                    "chips": t.chips,
                    "accelerator_type": self.accelerator_type(t.chips),
                    "machines": list(t.machines),
                    "source": t.source,
                    "mark": t.mark,
                }
                for t in self.topologies
            ],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A slice named by its accelerator type. `topology` None: that many chips come in several shapes.

    `hosts` is the number of virtual machines, None where more than one machine type can build it.
    """

    name: str
    family: str
    chip: str
    chips: int
    topology: str | None
    machines: tuple[str, ...]
    hosts: int | None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "family": self.family,
            "chip": self.chip,
            "chips": self.chips,
            "topology": self.topology,
            "machines": list(self.machines),
            "hosts": self.hosts,
        }


@cache
def families() -> dict[str, SliceFamily]:
    """Every family, by name, in the order of the generations."""
    data = read_data("slices.json")
    sources = data["sources"]
    result: dict[str, SliceFamily] = {}
    for name, raw in data["families"].items():
        types: dict[str, Any] = raw["accelerator_types"] or {"prefixes": [], "count_per_chip": None}
        if raw["wrap"] not in WRAPS:
            raise ValueError(f"{name}: wrap rule {raw['wrap']!r} does not exist")
        result[name] = SliceFamily(
            name=name,
            chip=name,
            axes=raw["axes"],
            wrap=raw["wrap"],
            small_topologies=tuple(raw["small_topologies"]),
            axis_multiple=raw["axis_multiple"],
            twistable=raw["twistable"],
            accelerator_prefixes=tuple(types["prefixes"]),
            count_per_chip=types["count_per_chip"],
            gke_accelerators=tuple(raw["gke_accelerators"]),
            xpk=XpkTypes(**_sourced(raw["xpk"], sources, topologies=tuple(raw["xpk"]["topologies"])))
            if raw["xpk"]
            else None,
            tpu_runtime=Runtime(**_sourced(raw["tpu_runtime"], sources)) if raw["tpu_runtime"] else None,
            ici_resiliency=_noted(raw, "ici_resiliency", sources),
            lone_on_gke=_noted(raw, "lone_on_gke", sources),
            numbers=parse_numbers(name, raw["numbers"], UNITS, sources),
            machines=tuple(
                MachineType(name=m, family=name, numbers=parse_numbers(m, numbers, UNITS, sources))
                for m, numbers in raw["machines"].items()
            ),
            topologies=tuple(
                Topology(
                    shape=t["topology"], machines=tuple(t["machines"]), source=sources[t["source"]], mark=t["mark"]
                )
                for t in raw["topologies"]
            ),
            notes=tuple(raw["notes"]),
        )
    return result


def _noted(raw: dict[str, Any], key: str, sources: dict[str, str]) -> Noted | None:
    return Noted(**_sourced(raw[key], sources)) if key in raw else None


def _sourced(raw: dict[str, Any], sources: dict[str, str], **more: Any) -> dict[str, Any]:
    """The fields with the full text of their source."""
    return {**raw, "source": sources[raw["source"]], **more}


def cloud_names(family: SliceFamily) -> list[str]:
    """The names that clouds give to a family: type prefixes, GKE labels, machine types and their series."""
    machines = [m.name for m in family.machines]
    series = [m.split("-")[0] for m in machines]
    return list(dict.fromkeys([*family.accelerator_prefixes, *family.gke_accelerators, *machines, *series]))


@cache
def _index() -> Index:
    return Index("slice", {name: cloud_names(f) for name, f in families().items()})


@cache
def _prefixes() -> dict[str, str]:
    return {key(p): f.name for f in families().values() for p in f.accelerator_prefixes}


def family(name: str) -> SliceFamily:
    """The family called `name`: its chip, an accelerator-type prefix, a GKE label or a machine type."""
    return families()[_index().find(name)]


def slice_(name: str) -> Slice:
    """The slice of an accelerator type such as v5p-128 or v5litepod-16.

    Raises QuestionError where the name is no accelerator type, or where no slice has that many chips.
    """
    found = _accelerator_type(name)
    if not found:
        raise QuestionError(
            f"{shown(name)} is no accelerator type",
            expected="a name such as v5p-128, v5litepod-16, v6e-256 or tpu7x-128",
            advice=_index().how_to_list(),
        )
    f, count = found
    per_chip = f.count_per_chip or 1  # a family with accelerator types states it
    chips, rest = divmod(count, per_chip)
    listed = next((t for t in f.topologies if not rest and t.chips == chips), None)
    cubes_fit = f.axis_multiple and not rest and chips and not chips % f.axis_multiple**3
    if not listed and not (cubes_fit and chips <= (f.numbers["pod_chips"].figure or 0)):
        near = sorted(f.topologies, key=lambda t: abs(t.chips - chips))[:3]
        raise QuestionError(
            f"no slice is called {shown(name)}: {f.name} slices count {per_chip} for each chip",
            expected="such as " + ", ".join(f.accelerator_type(t.chips) or t.shape for t in near),
            advice=_index().how_to_list(),
        )
    machines = listed.machines if listed else (f.machines[-1].name,)
    per_host = {m.chips for m in f.machines if m.name in machines}
    return Slice(
        name=f.accelerator_type(chips) or name,
        family=f.name,
        chip=f.chip,
        chips=chips,
        topology=listed.shape if listed else None,
        machines=machines,
        hosts=chips // per_host.pop() if len(per_host) == 1 else None,
    )


def chip_of(name: object) -> str | None:
    """The chip of an accelerator type such as v5litepod-16, or None where `name` is none."""
    found = _accelerator_type(name)
    return found[0].chip if found else None


def _accelerator_type(name: object) -> tuple[SliceFamily, int] | None:
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        return None
    match = re.fullmatch(r"(.*[^\s_-])[\s_-]+([0-9]{1,6})", name.strip())
    if not match:
        return None
    prefix = key(match[1])
    entry = _prefixes().get(prefix) or _prefixes().get(prefix.removeprefix("tpu"))
    return (families()[entry], int(match[2])) if entry else None
