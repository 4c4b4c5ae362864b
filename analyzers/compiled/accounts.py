"""The ledger of a compiled step: one step of all chips, each operation at its roof. All of it is modelled.

held = useful maths + recomputation + padding + below roofline + exposed communication
time computing = sum over operations of max(FLOPs / peak, bytes / HBM bandwidth), one after another, and padding
useful maths = model FLOPs / peak;  recomputation = rematerialised FLOPs / peak
padding = FLOPs that the matrix unit's tiles add / peak
below roofline = time computing - useful maths - recomputation - padding: memory-bound operations, and FLOPs that
                 the model's own count leaves out
exposed communication = collectives at link speed; asynchronous ones only beyond the time computing
"""

import numpy as np

from analyzers.base import Facts
from analyzers.compiled.compiled import CompiledResult, analyze
from analyzers.flops.peak import Hardware
from analyzers.flops.program_matmuls import program_excess
from analyzers.subject import chip_of
from analyzers.time.training_accounts import Book, leaf, parent
from errors import QuestionError
from runs.tables import Tables, frame

BOUND = (
    "A bound, not a forecast: one step, each operation at the peak or the bandwidth of the chip, whichever takes "
    "longer, one after another. A real step takes longer."
)


def from_program(tables: Tables, facts: Facts, machine: Hardware) -> Book:
    """The accounts of one step. Raises QuestionError where the compiler gave no program or the chip is not known."""
    result = analyze(tables, facts, {})
    if not len(result.ops):
        raise QuestionError(
            "this program did not compile, so it holds no chip time",
            advice="The page Compile for TPU says why; compile it for more chips, or with another mesh.",
        )
    peak, computing = machine.peak_flops_per_s, result.bounds.ops_in_turn_s
    if not peak or not computing:
        raise QuestionError("peak and bandwidth of this chip are not known", advice="Name a chip of the catalogue.")
    devices, chips = machine.devices_per_chip, machine.chips
    again = _recomputed_flops(tables) * devices / peak
    whole = (result.flops_per_chip or 0.0) / peak
    padding, padding_low = _padding(tables, facts, result.flops_per_chip or 0.0, devices, peak)
    stated = result.model_flops_per_step
    useful = min(stated / chips / peak if stated else whole - again, computing)
    again = min(again, computing - useful)
    exposed = _exposed(result, facts, computing + padding)
    flops = "model FLOPs" if stated else "FLOPs of the program, recomputation left out"
    account = parent(
        "held",
        [
            parent(
                "productive",
                [
                    leaf("useful_maths", useful * chips, "modelled", f"{flops} / {machine.peak_source}"),
                    leaf("recomputation", again * chips, "modelled", "rematerialised FLOPs of the program / peak"),
                    leaf("padding", padding * chips, "modelled", "matrix products rounded up to tiles / peak"),
                    leaf(
                        "below_roofline",
                        (computing - useful - again) * chips,
                        "modelled",
                        "operations at their roof, less useful maths and recomputation",
                    ),
                    leaf("exposed_communication", exposed * chips, "modelled", "collectives at the speed of the links"),
                ],
                "one compiled step",
            ),
        ],
        "chips x the modelled time of one step",
    )
    notes = [BOUND]
    if padding:
        notes.append(
            f"Padding: {padding_low * chips:.3g} to {padding * chips:.3g} chip-seconds, the upper end entered."
            " Nobody has measured on silicon how far a matrix unit can avoid it."
        )
    return Book(account, stated, None, None, None, tuple(notes))


def _recomputed_flops(tables: Tables) -> float:
    """Rematerialised FLOPs of one device in a step."""
    return float(frame(tables, "modules", ["remat_flops"])["remat_flops"].fillna(0).astype(float).sum())


def _padding(tables: Tables, facts: Facts, flops: float, devices: int, peak: float) -> tuple[float, float]:
    """Seconds of a chip that padding of matrix products costs at peak: as printed, and at best.

    `flops`: all that a chip executes. The products may be those of the whole mesh, before they were sharded; then only
    their tax holds for a chip, on no more FLOPs than it executes.
    """
    chip = chip_of(facts)
    side = chip.value("mxu_side") if chip else None
    excess = program_excess(tables, int(side)) if side else None
    if excess is None or not excess.useful_flops:
        return 0.0, 0.0
    useful = min(excess.useful_flops * devices, flops)
    taxes = (p / excess.useful_flops - 1 for p in (excess.padded_flops, excess.padded_flops_optimistic))
    most, least = (useful * tax / peak for tax in taxes)
    return most, least


def _exposed(result: CompiledResult, facts: Facts, computing: float) -> float:
    """Seconds of a chip in collectives that computing cannot cover."""
    rates = {p.name: p.rate for p in result.bounds.parts}
    rows = result.network
    seconds = np.zeros(len(rows))
    for column, rate in (("ici_bytes", rates.get("network")), ("dcn_bytes", rates.get("dcn"))):
        if rate:
            seconds += rows[column].to_numpy(dtype=float) / rate
    hidden = rows["asynchronous"].fillna(False).to_numpy(dtype=bool)
    return float(seconds[~hidden].sum()) + max(float(seconds[hidden].sum()) - computing, 0.0)
