"""The answer about placements: the machine, the step that is reckoned, and every way to lay the mesh, best first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.whatif.placement.asked import EXPERT_MODEL, MODEL, SEQ, Asked
from catalog.models import model as find_model
from errors import QuestionError
from errors import format as fmt
from simulators.placement import jax_order
from simulators.placement.build import Given, machine
from simulators.placement.fit import nearest
from simulators.placement.machine import Machine, closure
from simulators.placement.mesh import LogicalAxis, parse_mesh, shown, ways
from simulators.placement.search import OVERLAPS, Costing, Found, Placement, jax_tray, search
from simulators.placement.traffic import Traffic, Work, traffic, unevenness
from simulators.topology.network import Network
from simulators.topology.spec import Spec

MICROBATCHES = 4  # of a stage: a bubble of a fifth to a quarter

FOLDS = (
    "A block without wraps is a ring where the devices are put in the order of a closed walk through it, as the code "
    "does: JAX itself does so for small trays only, MaxText with mesh_ring_axis."
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`found.placements`: the best first. `compute_s`: maths of a step at the chip's peak, None: not known."""

    machine: Machine
    axes: tuple[LogicalAxis, ...]
    work: Work
    demands: tuple[Traffic, ...]
    compute_s: float | None
    bubble_s: float
    overlap: str
    found: Found
    limit: int
    notes: tuple[str, ...]

    @property
    def best(self) -> Placement:
        return self.found.placements[0]

    @property
    def shown(self) -> tuple[Placement, ...]:
        return self.found.placements[: self.limit]

    @property
    def best_whole(self) -> Placement | None:
        """The best of the ways that split no physical axis; None where none is among the best that are kept."""
        return next((p for p in self.found.placements if not p.split(self.machine)), None)

    def telling(self, count: int) -> tuple[Placement, ...]:
        """The best ones, and whether or not among them the best without splitting and JAX's own."""
        chosen = list(self.found.placements[:count])
        for other in (self.best_whole, self.found.jax):
            if other is not None and other not in chosen:
                chosen.append(other)
        return tuple(chosen)

    def held(self, placement: Placement) -> dict[str, list[str]]:
        """Logical axis -> what it holds, such as x, or y:4 for four neighbours along y."""
        return {
            a.name: [p.text(self.machine) for p in pieces]
            for a, pieces in zip(self.axes, placement.pieces, strict=True)
        }

    def wrapped(self, placement: Placement) -> dict[str, bool | None]:
        """Whether each logical axis closes to a ring; None for one of a single device."""
        return {name: None if how is None else how in ("wrap", "level") for name, how in self.ring(placement).items()}

    def ring(self, placement: Placement) -> dict[str, str | None]:
        """How each logical axis closes: wrap, level, fold or open; None for one of a single device."""
        return {a.name: closure(pieces, self.machine) for a, pieces in zip(self.axes, placement.pieces, strict=True)}

    def by_axis_s(self, placement: Placement) -> dict[str, float]:
        return {a.name: s for a, s in zip(self.axes, placement.by_axis_s, strict=True)}

    def placement_dict(self, placement: Placement) -> dict[str, Any]:
        jax = self.found.jax is placement
        return {
            "axes": self.held(placement),
            "wrapped": self.wrapped(placement),
            "ring": self.ring(placement),
            "step_s": placement.step_s,
            "low_s": placement.low_s,
            "high_s": placement.high_s,
            "communication_s": self.by_axis_s(placement),
            "by_best": placement.step_s / self.best.step_s if self.best.step_s else 1.0,
            "class": "split" if placement.split(self.machine) else "whole",
            "alike": placement.alike,
            "jax": jax and ("split" if self.found.jax_splits else "default"),
        }

    def to_dict(self) -> dict[str, Any]:
        jax = self.found.jax
        return {
            "placements": [self.placement_dict(p) for p in self.shown],
            "topology": self.machine.spec,
            "mesh": {a.name: a.size for a in self.axes},
            "chip": self.machine.chip,
            "chips": self.machine.chips,
            "devices": self.machine.devices,
            "physical": [
                {
                    "axis": a.name,
                    "length": a.length,
                    "kind": a.kind,
                    "ring": a.wrapped,
                    "oneway_bytes_per_s": a.oneway_bytes_per_s,
                }
                for a in self.machine.axes
            ],
            "model": self.work.model.name,
            "batch": self.work.batch,
            "seq": self.work.seq,
            "dtype": self.work.dtype,
            "microbatches": self.work.microbatches,
            "overlap": self.overlap,
            "compute_s": self.compute_s,
            "bubble_s": self.bubble_s,
            "collectives": [
                {"axis": d.axis, "kind": d.kind, "array_bytes": d.array_bytes, "times": d.times, "what": d.what}
                for d in self.demands
            ],
            "best_whole": None if self.best_whole is None else self.placement_dict(self.best_whole),
            "ways": self.found.ways,
            "different": self.found.different,
            "complete": self.found.complete,
            "jax": None if jax is None else self.placement_dict(jax),
            "basis": "modelled",
            "notes": list(self.notes),
        }


def answered(asked: Asked, spec: Spec, network: Network) -> Answer:
    """Raises QuestionError: a mesh that does not fit the machine or the model, with what would."""
    axes = tuple(parse_mesh(asked.mesh))
    given = Given(
        chip=asked.chip,
        link_bytes_per_s=asked.link_bytes_per_s,
        hop_s=asked.hop_s,
        dcn_bytes_per_s=asked.dcn_bytes_per_s,
        peak_flops_per_s=asked.peak_flops_per_s,
    )
    built = machine(spec, network, axes, asked.dtype, given)
    work, said = _work(built, axes, asked)
    demands = traffic(axes, work)
    peak = built.peak_flops_per_s
    compute = None if peak is None else work.flops / built.devices / peak
    stages = ways(axes, "pipeline")
    bubble = (compute or 0.0) * (stages - 1) / work.microbatches
    costing = Costing(built, axes, demands, compute or 0.0, bubble, asked.overlap)
    found = search(costing)
    if not found.placements:
        near = nearest(built.devices, axes, built.slices)
        rule = f"axes that {built.slices} slices divide together" if built.slices > 1 else "axes that end with a level"
        raise QuestionError(
            f"mesh {shown(axes)} cannot be laid over {spec.text}",
            where="mesh",
            expected=f"{rule} of "
            + ", ".join(f"{a.name} {a.length}" for a in built.axes)
            + (f": such as {near}" if near else ""),
        )
    if any(closure(pieces, built) == "fold" for p in found.placements[: asked.limit] for pieces in p.pieces):
        said.append(FOLDS)
    notes = (
        *said,
        f"Overlap “{asked.overlap}”: {OVERLAPS[asked.overlap]}.",
        *built.notes,
        *unevenness(axes, work),
        *_search_notes(found, built),
        *_trays(built, axes),
    )
    return Answer(
        machine=built,
        axes=axes,
        work=work,
        demands=demands,
        compute_s=compute,
        bubble_s=bubble,
        overlap=asked.overlap,
        found=found,
        limit=asked.limit,
        notes=notes,
    )


def _work(built: Machine, axes: Sequence[LogicalAxis], asked: Asked) -> tuple[Work, list[str]]:
    """The step, and sentences on what was assumed of it."""
    name = asked.model or (EXPERT_MODEL if ways(axes, "expert") > 1 else MODEL)
    spread = ways(axes, "data", "fsdp", "expert")
    batch, seq = asked.batch or max(built.chips, spread), asked.seq or SEQ
    stages = ways(axes, "pipeline")
    each = max(batch // spread, 1)
    microbatches = asked.microbatches or (min(each, MICROBATCHES * stages) if stages > 1 else 1)
    if microbatches > each:
        raise QuestionError(
            f"{microbatches:,} micro-batches of {fmt.count(each, 'sequence')} a pipeline",
            where="microbatches",
            expected=f"at most {each:,}",
        )
    work = Work(model=find_model(name), batch=batch, seq=seq, dtype=asked.dtype, microbatches=microbatches)
    assumed = [
        what
        for what, given in (
            (f"model {work.model.name}", asked.model),
            (f"a batch of {fmt.count(batch, 'sequence')}", asked.batch),
            (f"{seq:,} tokens a sequence", asked.seq),
            (f"{microbatches:,} micro-batches", asked.microbatches or stages == 1),
        )
        if not given
    ]
    said = ["Everything is modelled: maths at the chip's peak, links at full rate, nothing measured."]
    if assumed:
        said.append(f"Not given, so assumed: {', '.join(assumed)}.")
    return work, said


def _search_notes(found: Found, built: Machine) -> list[str]:
    """How much was tried, and what the best asks of the compiler."""
    notes = []
    if not found.complete:
        notes.append(f"There are more ways than the {found.ways:,} that were tried: a better one may exist.")
    best = found.placements[0]
    if not built.levels and best.split(built):
        whole = next((p for p in found.placements if not p.split(built)), None)
        than = f"; with whole axes alone a step takes {fmt.duration(whole.step_s)} at best" if whole else ""
        notes.append(
            "The best splits physical axes. It is reckoned with collectives that use all links of a block at "
            f"once, which a compiler may not manage{than}."
        )
    return notes


def _trays(built: Machine, axes: Sequence[LogicalAxis]) -> list[str]:
    """Where JAX goes by no axes."""
    order = jax_tray(built, axes)
    if order is None:
        return []
    at = np.stack(np.unravel_index(order.ravel(), built.dims), axis=1)
    at = at[:, [a.kind == "link" for a in built.axes]]
    near = int((np.abs(np.roll(at, -1, axis=0) - at).sum(axis=1) <= 1).sum())
    how = "host by host" if built.device_kind in jax_order.BY_HOST else "in an order of its own"
    return [
        f"mesh_utils of JAX lays this slice {how}, not by its axes, and it is not among the ways here: of the "
        f"{order.size:,} steps around, {near:,} stay on a chip or go to a neighbour."
    ]
