"""The ledger of a compiled step: one step of all chips, each operation at its roof. All of it is modelled.

held = useful maths + recomputation + padding + below roofline + exposed communication: the least time of `floor.py`
useful maths = model FLOPs / peak;  recomputation = rematerialised FLOPs / peak
padding = FLOPs that the matrix unit's tiles add at the least / peak
below roofline = operations at their roof - useful maths - recomputation: memory-bound operations, and FLOPs that
                 the model's own count leaves out
exposed communication = collectives at link speed; asynchronous ones only beyond the time computing
"""

from analyzers.base import Facts
from analyzers.compiled.compiled import analyze
from analyzers.flops.peak import Hardware
from analyzers.flops.program_matmuls import modules
from analyzers.time.training_accounts import Book, leaf, parent
from errors import QuestionError
from errors import format as fmt
from runs.tables import Tables

BOUND = (
    "A bound, not a forecast: one step, each operation at the peak or the bandwidth of the chip, whichever takes "
    "longer, one after another. A real step takes longer."
)

TOLD = ("useful_maths", "recomputation", "padding", "below_roofline", "exposed_communication")
"""What a compiled step is entered in: a program tells no other account."""


def from_program(tables: Tables, facts: Facts, machine: Hardware) -> Book:
    """The accounts of one step. Raises QuestionError where the compiler gave no program or the chip is not known."""
    result = analyze(tables, facts, {})
    if not len(result.ops):
        raise QuestionError(
            "this program did not compile, so it holds no chip time",
            advice="The page Compile for TPU says why; compile it for more chips, or with another mesh.",
        )
    if result.flops_per_chip is None:
        raise QuestionError(
            "nobody tells how much this program computes",
            advice="Its kernels came without a cost estimate (of Pallas, the argument `cost_estimate`).",
        )
    least, peak, chips = result.floor, machine.peak_flops_per_s, machine.chips
    if least is None or not peak:
        raise QuestionError("peak and bandwidth of this chip are not known", advice="Name a chip of the catalogue.")
    again = _recomputed_flops(tables) * machine.devices_per_chip / peak
    whole = (result.flops_per_chip or 0.0) / peak
    stated = result.model_flops_per_step
    useful = min(stated / chips / peak if stated else whole - again, least.roof_s)
    again = min(again, least.roof_s - useful)
    flops = "model FLOPs" if stated else "FLOPs of the program, recomputation left out"
    account = parent(
        "held",
        [
            parent(
                "productive",
                [
                    leaf("useful_maths", useful * chips, "modelled", f"{flops} / {machine.peak_source}"),
                    leaf("recomputation", again * chips, "modelled", "rematerialised FLOPs of the program / peak"),
                    leaf("padding", least.padding_s * chips, "modelled", "matrix products rounded up to tiles / peak"),
                    leaf(
                        "below_roofline",
                        (least.roof_s - useful - again) * chips,
                        "modelled",
                        "operations at their roof, less useful maths and recomputation",
                    ),
                    leaf(
                        "exposed_communication",
                        least.network_s * chips,
                        "modelled",
                        "collectives at the speed of the links",
                    ),
                ],
                "one compiled step",
            ),
        ],
        "chips x the modelled time of one step",
    )
    notes = [BOUND]
    if least.padding_most_s:
        low, high = (fmt.number(s * chips) for s in (least.padding_s, least.padding_most_s))
        notes.append(
            f"Padding: {low} to {high} chip-seconds, the lower end entered, as this is the least time."
            " Nobody has measured on silicon how far a matrix unit can avoid it."
        )
    return Book(account, stated, None, None, None, tuple(notes))


def _recomputed_flops(tables: Tables) -> float:
    """Rematerialised FLOPs of one device in a step."""
    return float(modules(tables, "remat_flops")["remat_flops"].fillna(0).astype(float).sum())
