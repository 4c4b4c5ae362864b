"""Which machines a slice is created on, how many, and what cannot be created, with the nearest that can."""

from dataclasses import dataclass
from math import prod

from catalog.chips import chip as find_chip
from catalog.slices import MachineType, SliceFamily, families
from errors import QuestionError
from simulators.topology.spec import Spec
from simulators.topology.systems import shapes

_SINGLE_HOST_KIND = ("ct3-", "ct5l-")  # machines of the `device` kind, which GKE labels apart from slices


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the texts are written from. `hosts` and `chips_per_host` are of one slice; a host is a virtual machine."""

    spec: Spec
    family: SliceFamily
    name: str
    shape: str
    machine: str | None
    chips_per_host: int
    hosts: int
    accelerator: str | None
    capacity: str

    @property
    def devices(self) -> int:
        """JAX devices of the whole job."""
        return self.spec.chips * int(find_chip(self.family.chip).value("jax_devices_per_chip") or 1)


@dataclass(frozen=True)
class Unavailable:
    """Why a tool has no text, a sentence."""

    why: str


def cannot(spec: Spec) -> str | None:
    """Why nobody can create this topology, a sentence; None where somebody can."""
    family = families().get(spec.chip or "")
    if spec.chip is None:
        return "This network is of no machine in particular: it can be counted and drawn, but nobody offers it."
    if family is None:
        return f"{spec.chip} is a GPU: its nodes and racks are created by other means than TPU slices."
    if not family.axes or not spec.dims:
        return f"{spec.chip} is announced, but how its slices are created is not published."
    if machines(spec) or not family.machines and family.tpu_runtime and not _lone(spec, family):
        return None
    if family.machines or family.tpu_runtime:
        small = ", ".join(shapes.shown(family, s) for s in shapes.all_shapes(family)[:1])
        return f"No machine has {prod(spec.dims)} chip of {spec.chip} alone: the smallest slice is {small}."
    return f"{spec.chip} is announced, but no machine type of it is published."


def machines(spec: Spec) -> tuple[MachineType, ...]:
    """The machine types that can build one slice, that of 4 chips first, which is what xpk and most examples use."""
    family = families().get(spec.chip or "")
    if family is None or not spec.dims:
        return ()
    listed = next((t.machines for t in family.topologies if t.shape == shapes.text_of(spec.dims)), None)
    if listed is None:
        listed = () if _lone(spec, family) else tuple(m.name for m in family.machines[-1:])
    there = [m for m in family.machines if m.name in listed and prod(spec.dims) % m.chips == 0]
    return tuple(sorted(there, key=lambda m: (m.chips != 4, m.name)))


def nearest_creatable(spec: Spec, count: int = 3) -> tuple[str, ...]:
    """The topologies nearest to this one that can be created, one of each generation of as many axes, newest first.

    Nearest in shape where the shape has as many axes, else as many chips as near as there are.
    """
    dims = spec.dims if len(spec.dims) in (2, 3) and min(spec.dims) > 0 else (spec.chips,)
    found = []
    for family in reversed(families().values()):
        if family.machines and (len(dims) == 1 or family.axes == len(dims)):
            near = shapes.nearest(family, dims, 1)[0]
            if len(dims) > 1 or prod(near) == spec.chips or family.axes == 3:
                twisted = ":twisted" * (spec.twisted and shapes.no_twist(family, near) is None)
                found.append(f"{shapes.SHORT[family.name]}:{shapes.text_of(near)}{twisted}")
    return tuple(found[:count])


def _lone(spec: Spec, family: SliceFamily) -> bool:
    return prod(spec.dims) == 1 and shapes.text_of(spec.dims) not in {t.shape for t in family.topologies}


def plan_of(spec: Spec, machine: str | None, capacity: str) -> Plan:
    assert spec.chip is not None, "slices are of one chip"
    family = families()[spec.chip]
    there = machines(spec)
    picked = next((m for m in there if m.name == machine), None)
    if machine is not None and picked is None:
        known = ", ".join(m.name for m in there) or "none: this generation is offered without machine types"
        raise QuestionError(f"{spec.text} is not built of {machine}", expected=known)
    picked = picked or (there[0] if there else None)
    chips = picked.chips if picked else int(find_chip(family.chip).value("chips_per_host") or 4)
    return Plan(
        spec=spec,
        family=family,
        name=name_of(spec),
        shape=shapes.text_of(spec.dims),
        capacity=capacity,
        machine=picked.name if picked else None,
        chips_per_host=chips,
        hosts=max(prod(spec.dims) // chips, 1),
        accelerator=_accelerator(family, picked.name) if picked else None,
    )


def name_of(spec: Spec) -> str:
    """A name for jobs, services and node pools: lower case, digits and hyphens, a letter first, under 40 characters."""
    assert spec.chip is not None, "slices are of one chip"
    short = shapes.SHORT[families()[spec.chip].name].lower()
    parts = ["tpu", short, shapes.text_of(spec.dims), "twisted" * spec.twisted, f"x{spec.slices}" * (spec.slices > 1)]
    return "-".join(p for p in parts if p)


def _accelerator(family: SliceFamily, machine: str) -> str | None:
    device = machine.startswith(_SINGLE_HOST_KIND)
    kinds = [a for a in family.gke_accelerators if a.endswith("-device") == device]
    return kinds[0] if kinds else None
