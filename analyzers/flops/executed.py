"""What the programs of a run execute beyond the model's own FLOPs: recomputation, and padding of matrix products."""

from dataclasses import dataclass

from analyzers.base import Facts
from analyzers.flops.program_matmuls import KEY, modules, program_excess, program_runs, unknown_programs
from analyzers.subject import chip_of
from runs.tables import Tables


@dataclass(frozen=True)
class Extra:
    """As multiples of the FLOPs that the programs executed, each weighted by how often it ran.

    `recomputed`: rematerialised operations, a part of those FLOPs. `padding`: what the matrix unit does besides, for
    the zeros of its tiles; `padding_low` where it may swap operands as it likes. All are 0 where the FLOPs of programs
    that ran, `unknown` by name, are not known. `untold`: which of the two accounts nothing tells of: its 0 is none.
    """

    recomputed: float = 0.0
    padding: float = 0.0
    padding_low: float = 0.0
    unknown: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()


def extra(tables: Tables, facts: Facts) -> Extra:
    """0 where no program was kept; no padding where the chip's matrix unit is not known."""
    if unknown := unknown_programs(tables):
        return Extra(unknown=unknown, untold=("recomputation", "padding"))
    chip = chip_of(facts)
    side = chip.value("mxu_side") if chip else None
    excess = program_excess(tables, int(side)) if side else None
    recomputed = recomputed_share(tables)
    return Extra(
        recomputed=recomputed or 0.0,
        padding=excess.padded_share if excess else 0.0,
        padding_low=excess.padded_share_optimistic if excess else 0.0,
        untold=(*(("recomputation",) if recomputed is None else ()), *(() if excess else ("padding",))),
    )


def recomputed_share(tables: Tables) -> float | None:
    """Part of the executed FLOPs in rematerialised operations, over all programs; None where no program was kept, and
    where the FLOPs of one that ran are not known."""
    if unknown_programs(tables):
        return None
    programs = modules(tables, "remat_flops").drop_duplicates(KEY)
    if programs["remat_flops"].isna().all():
        return None  # most traces of PyTorch do not say what is computed again
    runs, _ = program_runs(tables)
    rows = runs.merge(programs, on=KEY, how="left")
    each = rows["runs"].fillna(0.0).astype(float)
    done = float((rows["flops"].fillna(0.0).astype(float) * each).sum())
    again = float((rows["remat_flops"].fillna(0.0).astype(float) * each).sum())
    return again / done if done else None
