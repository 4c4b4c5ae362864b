"""What the program itself does too much of: matrix units that compute zeros, numbers wider than the chip needs, and
activations computed again beyond what freeing their memory takes."""

import math
import re

from analyzers.base import fact
from analyzers.device.host_code import hot_code
from analyzers.device.operations import OpsResult
from analyzers.findings.base import Band, Evidence, Finding, NotTold, Rule, RuledOut, Seen, Told
from analyzers.findings.carried import carried, computing
from analyzers.findings.parts import step_parts
from analyzers.flops.executed import extra
from analyzers.flops.program_matmuls import modules
from analyzers.subject import devices_per_chip
from errors import format as fmt
from runs.tables import frame

BEYOND = 1.4  # times the FLOPs that the model needs: conventions differ by less
GROWN = 1.2  # times the parameters stated
ONCE = 0.45  # of the useful FLOPs: to compute the forward pass again is a third of them
HOST_CODE = "idle_host_code"
ARRAYS = ("array", "asarray", "device_put")  # functions that make arrays of a batch
UNNAMED = 0.25  # of what computing too much costs: so much host code that no frame names is taken for work on its rows
WIDE = {"f64": ("float64", "float32"), "c128": ("complex128", "complex64")}
"""Element types that no accelerator computes at its rate for narrower ones, and what would do."""

SINGLE, MOSTLY = "f32", 0.5  # and of the time of all products: where so much is, it is how the job computes
SLOWER = (0.5, 0.75, 0.875)
"""Of products in float32 beside tensor cores, what these would not take: they are 8 times as fast by their peaks (A100,
H100), of which products reach the less the faster they are."""

WITHOUT = re.compile(
    r"\b(?:GTX? ?\d|MX\d|K[48]0\b|M[46]0\b|P(?:4|6|40|100)\b|TITAN X|Quadro [KMP])|compute capability [3-6]\.",
    re.IGNORECASE,
)
"""Names of GPUs that have no tensor cores: those before Volta, and GeForce cards that are called GTX."""

COMPUTED = ("below_roofline", "compute_unsplit")
"""Accounts of what is computed beside useful maths, the likelier first: of fused attention nobody tells the FLOPs."""

UNTOLD = {
    "padding": "nothing tells how far matrix products fill up the tiles of this chip's matrix units",
    "recomputation": "no program tells what it computes again",
}
"""Accounts of computing, and why their 0 is none that was read."""


def _little(seen: Seen, account: str, why: str) -> Told:
    """That an account is ruled out as a cause; where nothing tells of it, that it is not told."""
    computing = seen.amount("below_roofline", "padding", "recomputation")
    if computing > 0 and account not in extra(seen.tables, seen.facts).untold:
        return Told(ruled_out=(RuledOut(account, why, "mfu" if account == "recomputation" else account),))
    add = "" if seen.tables.rows("op_events") else "a profile"
    return Told(not_told=(NotTold((account,), UNTOLD[account], add),))


def _of_all_steps(seen: Seen, amount: float) -> float:
    """What profiled steps show, in all kept ones; of a program that nobody ran all that there is."""
    saw = step_parts(seen.tables, seen.facts).seen.any() if seen.tables.rows("op_events") else False
    return carried(seen, amount, in_each=True).likely if saw else amount


def _drawn(seen: Seen, account: str, shown: float, amount: float) -> dict[str, float]:
    """From its account, and what no profile saw of it from what is not known."""
    return {account: amount} if amount <= shown else seen.drawn(amount, account, "unattributed")


def padded(seen: Seen) -> Told:
    shown = seen.amount("padding")
    amount = _of_all_steps(seen, shown)
    if amount < seen.least:
        return _little(seen, "padding", "matrix products hardly fill up tiles")
    return Told(
        (
            Finding(
                cause="padding",
                title=f"Matrix units spend {fmt.whole_share(amount / seen.whole)} of the chip time on zeros that fill "
                "up their tiles.",
                gain=Band(amount * 0.5, amount, amount * 1.1),
                draws=_drawn(seen, "padding", shown, amount),
                question="padding",
                confidence=0.8,
                evidence=(Evidence("matrix units on padding", shown, "chip-seconds", "padding"),),
            ),
        )
    )


def recomputed(seen: Seen) -> Told:
    shown, useful = seen.amount("recomputation"), seen.amount("useful_maths")
    amount = _of_all_steps(seen, shown)  # as useful maths is
    if amount < seen.least or not useful:
        return _little(seen, "recomputation", "little or nothing is computed again")
    if amount <= ONCE * useful:
        why = f"computed again for {fmt.share(amount / useful)} of the useful maths, no more than one forward pass"
        return Told(ruled_out=(RuledOut("recomputation", why, "mfu"),))
    gain = _again(seen, amount, useful)
    return Told(
        (
            Finding(
                cause="recomputation",
                title=f"Activations are computed again for {fmt.whole_share(amount / useful)} of the useful maths: one "
                "more forward pass is a third.",
                gain=gain,
                draws=seen.drawn(gain.likely, "recomputation", *COMPUTED, "unattributed"),
                question="mfu",
                confidence=0.7,
                basis="modelled",
                evidence=(Evidence("recomputation", shown, "chip-seconds", "mfu"),),
            ),
        )
    )


def _again(seen: Seen, amount: float, useful: float) -> Band:
    """What computing again takes: at the peak rate at least, and at most its share of all computing, of which some is
    no product and is not computed again. Between them, by their geometric mean."""
    busy = computing(seen, "recomputation")
    most = max(busy.likely * amount / (amount + useful), amount)
    return Band(amount * 0.9, math.sqrt(amount * most), most * 1.15)


def wide(seen: Seen) -> Told:
    """Matrix products in numbers wider than any accelerator is built for."""
    rows = frame(seen.tables, "matmuls", ["dtype", "m", "k", "n", "batch", "count"])
    if not len(rows):
        return Told(not_told=(NotTold(("precision",), "no program tells the formats of its numbers", "a profile"),))
    work = rows[["m", "k", "n", "batch", "count"]].astype(float).fillna(1.0).prod(axis=1)
    dtype = rows["dtype"].astype(object).fillna("a format that is not told").astype(str)
    name = next((n for n in WIDE if work[dtype == n].sum() > 0.5 * work.sum()), None)
    if name is None and (found := _beside_tensor_cores(seen)) is not None:
        return Told((found,))
    if name is None:
        most = str(work.groupby(dtype).sum().idxmax())
        return Told(ruled_out=(RuledOut("precision", f"matrix products are mostly in {most}", "mfu"),))
    busy, sends = computing(seen), _sent_as(seen, name)
    sent = _carried_sends(seen, sends)
    now, then = WIDE[name]
    likely = busy.likely * 0.5 + sent
    return Told(
        (
            Finding(
                cause="precision",
                title=f"Matrix products are computed in {now}; {then} would move half the bytes, at twice the rate.",
                gain=Band(min(busy.low * 0.3, likely), likely, max(busy.high * 0.6 + sent, likely)),
                draws=_draws(seen, likely, sends, *COMPUTED, "unattributed", "useful_maths"),
                question="roofline",
                confidence=0.8,
                basis="modelled",
                evidence=(Evidence("computing", busy.likely, "chip-seconds", "roofline"),),
            ),
        )
    )


def _beside_tensor_cores(seen: Seen) -> Finding | None:
    """Products in float32 that a GPU ran on units beside its tensor cores, as most of their kernels' names tell."""
    found = seen.answer("operations", OpsResult)
    made = found and found.products
    if not made or WITHOUT.search(str(fact(seen.facts, "chip") or "")):
        return None
    rows = made.by_dtype[made.by_dtype["dtype"].eq(SINGLE).fillna(False)]
    beside = float((rows["seconds"] - rows["untold_seconds"] - rows["tensor_core_seconds"]).sum())
    shown = min(beside / devices_per_chip(seen.facts), seen.amount(*COMPUTED))
    whole = carried(seen, shown, in_each=True)
    if beside < MOSTLY * made.seconds or whole.likely * SLOWER[0] < seen.least:
        return None
    low, likely, high = (part * of for part, of in zip((whole.low, whole.likely, whole.high), SLOWER, strict=True))
    return Finding(
        cause="precision",
        title=f"Matrix products in float32 take {fmt.whole_share(whole.likely / seen.whole)} of the chip time, and run "
        "beside the tensor cores, which take narrower numbers.",
        gain=Band(low, likely, high),
        draws=seen.drawn(likely, *COMPUTED, "unattributed"),
        question="operations",
        confidence=0.8,
        basis="modelled",
        evidence=(Evidence("products beside tensor cores", shown, "chip-seconds", "operations"),),
    )


def _sent_as(seen: Seen, name: str) -> float:
    """Of the time in which nothing covers collectives, the half of their bytes that narrower numbers would not be;
    0 where most is sent in another format."""
    rows = frame(seen.tables, "collectives", ["bytes", "dtype"]).dropna()
    much = rows["bytes"].astype(float)
    wide = float(much[rows["dtype"].eq(name).fillna(False)].sum())
    return seen.amount("exposed_communication") * 0.5 if wide > 0.5 * much.sum() else 0.0


def _carried_sends(seen: Seen, sends: float) -> float:
    return carried(seen, sends, devices="exposed_communication_s").likely


def _draws(seen: Seen, lost: float, sends: float, *accounts: str) -> dict[str, float]:
    """Of these accounts, and of communication what is not sent any more."""
    return {"exposed_communication": sends} | seen.drawn(lost - sends, *accounts)


def oversized(seen: Seen) -> Told:
    """A program that computes more than its model needs, though nothing is computed again: a dimension is rounded up,
    or rows of the batch hold nothing. Which, the size of its gradients tells."""
    causes = ("dims_padding", "batch_padding")
    sizes = _sizes(seen)
    if sizes is None:
        why = "nothing tells both what the model needs and what its program computes"
        return Told(not_told=(NotTold(causes, why, "a profile, and the job's log where it prints TFLOP/s"),))
    executed, needed = sizes
    times = executed / needed
    if times < BEYOND:
        why = f"its program computes {fmt.number(times)} times what the model needs"
        return Told(ruled_out=tuple(RuledOut(c, why, "mfu") for c in causes))
    busy = computing(seen).likely
    grown = _grown(seen)
    sends = seen.amount("exposed_communication") * (1 - 1 / grown) if grown else 0.0
    rows_s = _of_rows(seen)
    lost = busy * (1 - 1 / times) + _carried_sends(seen, sends) + rows_s
    cause, what = causes[1], "its parameters are those stated, so rows of the batch hold nothing that is needed"
    if grown is not None:
        cause, what = causes[0], f"its gradients are of {fmt.number(grown)} times the parameters stated"
    return Told(
        (
            Finding(
                cause=cause,
                title=f"The program computes {fmt.number(times)} times the FLOPs that the model needs; {what}.",
                gain=Band(lost * 0.6, lost, lost * 1.2),
                draws={HOST_CODE: rows_s} | _draws(seen, lost - rows_s, sends, *COMPUTED, "unattributed"),
                question="mfu",
                confidence=0.75,
                basis="modelled",
                evidence=(
                    Evidence("FLOPs of the program in a step", executed, "FLOPs", "mfu"),
                    Evidence("FLOPs that the model needs", needed, "FLOPs", "mfu"),
                ),
            ),
        )
    )


def _of_rows(seen: Seen) -> float:
    """Chip-seconds in which devices wait for what their hosts do with rows of a batch that hold nothing: as much for
    each as for others, where most of their code makes arrays of the batch, or no frame names it and it is little beside
    what computing them costs; 0 where no such rows are."""
    sizes, shown = _sizes(seen), seen.amount(HOST_CODE)
    if sizes is None or sizes[0] < BEYOND * sizes[1] or _grown(seen) or shown < seen.least:
        return 0.0
    share, code = 1 - sizes[1] / sizes[0], hot_code(seen.tables)
    spent = carried(seen, shown, in_each=True).likely * share
    if code is None:
        return spent if spent <= UNNAMED * share * computing(seen).likely else 0.0
    return spent if code.function in ARRAYS else 0.0


def _sizes(seen: Seen) -> tuple[float, float] | None:
    """FLOPs of a step: those of its program, without what is computed again, and those that the model needs."""
    needed = _needed(seen)
    rows = modules(seen.tables, "name", "flops", "remat_flops", "instructions").dropna(subset=["flops"])
    rows = rows[rows["instructions"].notna()]  # else no program of a step: all that a trace of PyTorch saw
    if needed is None or not len(rows):
        return None
    rows = rows.sort_values("flops", kind="stable", ignore_index=True)
    main = rows[rows["name"] == rows["name"].iloc[-1]]
    each = main["flops"] - main["remat_flops"].fillna(0.0)
    return float(each.iloc[0]) * seen.chips, needed  # of several sizes the least is what all of them need


def _needed(seen: Seen) -> float | None:
    """FLOPs of a step by the model's own count."""
    said = fact(seen.facts, "model")
    found = said.get("model_flops_per_step") if isinstance(said, dict) else None
    return float(found) if isinstance(found, int | float) and found > 0 else None


def _grown(seen: Seen) -> float | None:
    """Times the parameters stated that are reduced as gradients, where that is all that ranks reduce; None where no
    more are than were stated."""
    parameters, layout = fact(seen.facts, "parameters"), fact(seen.facts, "parallelism")
    if not parameters or not isinstance(layout, dict) or any(n > 1 for a, n in layout.items() if a != "data"):
        return None
    rows = frame(seen.tables, "collectives", ["kind", "bytes", "dtype"])
    rows = rows[rows["kind"].isin(("all-reduce", "reduce-scatter"))].dropna(subset=["bytes", "dtype"])
    if not len(rows):
        return None
    width = {"f64": 8, "bf16": 2, "f16": 2}.get(str(rows["dtype"].mode().iloc[0]), 4)
    times = float(rows["bytes"].max()) / width / float(parameters)
    return times if times > GROWN else None


OVERSIZED = Rule(name="oversized", causes=("dims_padding", "batch_padding"), find=oversized)
OTHERS = (
    Rule(name="padded", causes=("padding",), find=padded),
    Rule(name="recomputed", causes=("recomputation",), find=recomputed),
    Rule(name="wide", causes=("precision",), find=wide),
)
RULES = (OVERSIZED, *OTHERS)
