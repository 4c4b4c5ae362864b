"""Memory: what a device holds when it holds most, how near that is to its limit, and what would give some back."""

from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from analyzers.base import Facts, fact, with_options
from analyzers.device import memory_model as by_formula
from analyzers.device import memory_run as by_run
from analyzers.device.memory_advice import Advice, advise, told_apart
from analyzers.device.snapshot.advice import advise as advise_snapshot
from analyzers.device.snapshot.advice import notes as history_notes
from analyzers.device.snapshot.answer import ALLOCATOR, Snapshot, snapshot
from analyzers.subject import CHIP, MODEL, SEQ, chip_of, model_of
from errors import QuestionError
from errors import format as fmt
from errors.options import Option
from runs.tables import Tables

OPTIONS: tuple[Option, ...] = (
    MODEL,
    CHIP,
    SEQ,
    Option(
        "program",
        str,
        None,
        "whose buffers: a program of the run by name; default: the one that needs most",
        label="Program",
    ),
    *by_formula.OPTIONS,
)
SUBJECTS = {
    "profile": "programs and allocators of a run that was profiled",
    "snapshot": "a recorded history of allocations",
    "compiled": "a program that was compiled and not run",
    "formula": "a model's training by formula",
}
JSON_BUFFERS = 200
UNTRACED = (
    "Where the assignment came without a trace over time, each place in memory counts as the largest value that it "
    "ever holds."
)
MISSED = 0.01  # of the peak: more than that, and the samples missed the fullest moment


@dataclass(frozen=True, kw_only=True)
class MemoryResult:
    """All bytes are of one device (one chip for `formula`).

    `subject`: a key of SUBJECTS. `peak_bytes`: what it holds at its fullest, padding included: the most that an
    allocator had handed out where the run was sampled, else what the largest program needs; `peak_basis` says how it
    is known. `parts`: what makes up `parts_bytes`, the peak of `program` (columns PART_COLUMNS of `memory_run`; for
    `formula` by account, for `snapshot` by line, as many bytes as were asked for). `limit_bytes`: what the device lets
    programs use, by `limit_source`; `fits`: whether the compiler, or the sum by formula, says so; None for what ran.
    `programs`, `devices`, `samples`: see `memory_run`.
    `largest_batch`: by formula, sequences of a microbatch that fit. `ran`: whether what the formula is asked about, as
    the run tells it, took steps: then it did fit, whatever the formula says. `snapshot`: who held it, of a history.
    """

    subject: str
    peak_bytes: int | None
    peak_basis: str
    limit_bytes: int | None
    limit_source: str
    fits: bool | None
    program: str | None
    parts: pd.DataFrame
    programs: pd.DataFrame
    devices: pd.DataFrame
    samples: pd.DataFrame
    advice: tuple[Advice, ...]
    chip: str | None = None
    setting: dict[str, Any] = field(default_factory=dict)
    largest_batch: int | None = None
    message: str = ""
    notes: tuple[str, ...] = ()
    ran: bool = False
    snapshot: Snapshot | None = None

    @property
    def parts_bytes(self) -> int:
        """What the parts hold, padding included."""
        return int(self.parts["padded_bytes"].sum())

    @property
    def inputs_only(self) -> bool:
        """Whether the parts are a program's inputs: nothing tells what else it holds, or nothing but a sum."""
        only = len(self.parts) > 0 and bool((self.parts["category"] == "argument").all())
        return only and len(self.programs) > 0 and bool(self.programs["peak"].isna().all())

    @property
    def untold_bytes(self) -> int | None:
        """What a program that the compiler refused needs beside its inputs; None where parts or nothing tell it."""
        if not self.inputs_only or self.fits is not False or self.peak_bytes is None:
            return None
        return max(self.peak_bytes - self.parts_bytes, 0) or None

    @property
    def padding_bytes(self) -> int | None:
        """What layouts add to the parts whose logical size is known; None where none is."""
        known = self.parts[self.parts["bytes"].notna() & (self.parts["category"] != "fragmentation")]
        return int((known["padded_bytes"] - known["bytes"]).sum()) if len(known) else None

    @property
    def free_bytes(self) -> int | None:
        """Limit less peak; negative where it does not fit."""
        return None if self.limit_bytes is None or self.peak_bytes is None else self.limit_bytes - self.peak_bytes

    @property
    def counted_bytes(self) -> int | None:
        """The most that a device's own allocator counted since it began, where no sample shows nearly as much."""
        if self.subject != "profile" or not len(self.devices) or self.peak_bytes is None:
            return None
        most = by_run.number(self.devices["lifetime_peak_bytes"].max())
        return most if most is not None and most > (1 + MISSED) * self.peak_bytes else None

    def categories(self) -> pd.DataFrame:
        """Bytes by category, largest first: category, parts, bytes (logical; null where not known), padded_bytes."""
        groups = self.parts.groupby("category", sort=False)
        table = groups.agg(
            parts=("name", "size"),
            bytes=("bytes", lambda b: b.sum() if b.notna().all() else None),
            padded_bytes=("padded_bytes", "sum"),
        )
        return table.sort_values("padded_bytes", ascending=False).reset_index()

    def to_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "peak_bytes": self.peak_bytes,
            "peak_basis": self.peak_basis,
            "limit_bytes": self.limit_bytes,
            "limit_source": self.limit_source or None,
            "free_bytes": self.free_bytes,
            "fits": self.fits,
            "chip": self.chip,
            "program": self.program,
            "program_peak_bytes": self.parts_bytes if len(self.parts) else None,
            "padding_bytes": self.padding_bytes,
            "categories": _records(self.categories()),
            "buffers": _records(self.parts.head(JSON_BUFFERS)),
            "programs": _records(
                self.programs.drop(columns=["capture", "program"], errors="ignore").rename(
                    columns={k: f"{k}_bytes" for k in (*by_run.TOTALS, "peak_logical")}
                )
            ),
            "devices": _records(self.devices),
            "advice": [{"what": a.what, "text": a.text, "bytes": a.bytes, "at_most": a.at_most} for a in self.advice],
            "setting": self.setting,
            "largest_batch": self.largest_batch,
            "message": self.message or None,
            "notes": list(self.notes),
            "snapshot": None if self.snapshot is None else self.snapshot.to_dict(),
        }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {k: None if pd.isna(v) else int(v) if isinstance(v, float) else v for k, v in row.items()}
        for row in table.astype(object).to_dict("records")
    ]


def analyze(tables: Tables, facts: Facts, options: dict[str, Any]) -> MemoryResult:
    """From the run's profile or compile; by formula for a model alone, or where an option names one.

    Raises QuestionError where the run tells nothing of memory and no model is known.
    """
    facts = with_options(facts, options, ("model", "chip", "seq"))
    history = None if options["model"] or options["program"] else snapshot(tables)
    if history is not None:
        return _of_snapshot(tables, facts, history)
    if options["model"] is None and (tables.rows("memory") or fact(facts, "outcome") is not None):
        return _of_run(tables, facts, options)
    if model_of(facts) is None:
        raise QuestionError(
            "nothing in this run tells of memory",
            advice="Add a profile (*.xplane.pb): it carries programs with their buffers; of PyTorch a memory snapshot "
            "(torch.cuda.memory._dump_snapshot). Or ask by formula: --option model=NAME.",
        )
    asked = any(value is not None for value in options.values())
    return replace(_by_formula(facts, options), ran=not asked and tables.rows("steps") > 0)


def _of_snapshot(tables: Tables, facts: Facts, history: Snapshot) -> MemoryResult:
    """Who held memory when most was held. Other allocators' samples and programs of the run are not part of it."""
    everything, chip = by_run.samples(tables), chip_of(facts)
    limit, source = by_run.limit_of(tables, facts, everything, chip)
    sampled = everything[everything["allocator"] == ALLOCATOR]
    held = history.holders.rename(columns={"where": "name", "phase": "category", "bytes": "padded_bytes"})
    return MemoryResult(
        subject="snapshot",
        peak_bytes=history.peak_bytes if history.recorded else None,
        peak_basis="measured",
        limit_bytes=limit,
        limit_source=source,
        fits=None,
        program=None,
        parts=held.reindex(columns=by_run.PART_COLUMNS).astype({"padded_bytes": "Int64"}),
        programs=pd.DataFrame(columns=by_run.PROGRAM_COLUMNS),
        devices=by_run.devices(sampled),
        samples=by_run.dated(sampled),
        advice=advise_snapshot(history),
        chip=chip.name if chip else fact(facts, "chip"),
        notes=history_notes(history, beside=len(everything) > len(sampled)),
        snapshot=history,
    )


def _of_run(tables: Tables, facts: Facts, options: dict[str, Any]) -> MemoryResult:
    programs, sampled = by_run.programs(tables), by_run.samples(tables)
    program = by_run.chosen(programs, options["program"])
    chip = chip_of(facts)
    limit, source = by_run.limit_of(tables, facts, sampled, chip)
    outcome = fact(facts, "outcome")
    empty = pd.DataFrame(columns=by_run.PART_COLUMNS)
    parts = empty if program is None else by_run.parts_of(tables, program)
    largest = None if program is None else by_run.number(programs["peak"].max())
    if len(sampled):
        peak, basis = int(sampled["used_bytes"].max()), "measured"
    elif outcome == "out_of_memory":
        peak, basis = by_run.number(fact(facts, "needed_bytes")), "modelled"
    else:
        peak, basis = largest, "modelled"
    if program is None and peak is None and outcome is None:
        raise QuestionError(
            "the run tells of no program's memory and no allocator's",
            advice="Profile steps with jax.profiler: the file carries programs with their buffers.",
        )
    return MemoryResult(
        subject="profile" if outcome is None else "compiled",
        peak_bytes=peak,
        peak_basis=basis,
        limit_bytes=limit,
        limit_source=source,
        fits=fact(facts, "fits"),
        program=None if program is None else str(program["name"]),
        parts=told_apart(parts),
        programs=programs,
        devices=by_run.devices(sampled),
        samples=by_run.dated(sampled),
        advice=advise(parts, float(parts["padded_bytes"].sum())),
        chip=chip.name if chip else fact(facts, "chip"),
        message=str(fact(facts, "message") or ""),
        notes=_notes(parts, programs, sampled, outcome, peak),
    )


def _of_samples(sampled: pd.DataFrame) -> str:
    """What the peak is the most of: samples of a profile stand close, those of a monitor a minute apart."""
    more = "Between samples more may have been in use."
    profiled = (sampled["capture"].notna() & (sampled["capture"] >= 0)).to_numpy(dtype=bool)
    by_allocators = f"{fmt.count(int(profiled.sum()), 'sample')} that allocators wrote into the profile"
    if profiled.all():
        kept_back = "bytes in use, and on a TPU those kept back for the program that runs"
        return f"The peak is the most of {by_allocators}: {kept_back}. {more}"
    beside = sampled[~profiled]
    keys = ["host", "device", "allocator"]
    apart = beside.dropna(subset=["ts_ns"]).groupby(keys, dropna=False)["ts_ns"].diff().dropna()
    every = f", {fmt.duration(float(apart.median()) / 1e9)} apart" if len(apart) and apart.median() > 0 else ""
    if not profiled.any():
        many = fmt.count(len(beside), "sample")
        return f"The peak is the most of {many} of bytes in use, taken beside any profile{every}. {more}"
    most, whoever = (fmt.size(int(part["used_bytes"].max())) for part in (sampled[profiled], beside))
    return (
        f"The peak is the most of {by_allocators} (at most {most}) and of {len(beside):,} taken beside it{every} "
        f"(at most {whoever}), of what was in use on a device, whoever held it. {more}"
    )


def _notes(
    parts: pd.DataFrame, programs: pd.DataFrame, sampled: pd.DataFrame, outcome: Any, peak: int | None
) -> tuple[str, ...]:
    notes = []
    if len(sampled):
        notes.append(_of_samples(sampled))
    if untimed := int(sampled["ts_ns"].isna().sum()):
        notes.append(f"Of {fmt.count(untimed, 'sample')} no time is told: counted, and not drawn over time.")
    if (sampled["allocator"] == by_run.PYTORCH).any():
        notes.append(
            "Who held it a memory snapshot tells: torch.cuda.memory._record_memory_history() before the steps, "
            "_dump_snapshot(file) after them."
        )
    if len(programs) and outcome is None:
        notes.append(
            "Buffers are those of the compiler's own assignment at the fullest moment of one program; what other "
            f"programs keep meanwhile is not among them. {UNTRACED}"
        )
    if outcome is not None and len(programs) and programs["peak"].isna().all():
        known = "the peak is not known" if peak is None else "of that, the compiler told the sum alone"
        notes.append(f"A dump of a program tells its inputs, not what it needs besides: {known}.")
    elif outcome is not None and len(programs):
        notes.append(_account(parts))
    if outcome == "out_of_memory":
        notes.append("The compiler refused the program: it does not fit. There is no schedule whose buffers to show.")
    if len(parts) and parts["copies"].isna().all() and (parts["category"] == "argument").any():
        notes.append("The program does not tell how its inputs are sharded, so nothing is said of copies.")
    return tuple(notes)


def _account(parts: pd.DataFrame) -> str:
    """What the compiler tells of a program that was not run: every buffer, or sums beside the inputs."""
    if parts.loc[parts["category"] != "argument", "bytes"].isna().any():
        return (
            "The compiler's own account of one device: arguments one by one from their layouts; of what it needs "
            "besides it tells the sum only."
        )
    return f"The compiler's own account of one device, buffer by buffer at the fullest moment. {UNTRACED}"


def _by_formula(facts: Facts, options: dict[str, Any]) -> MemoryResult:
    model = model_of(facts)
    asked = by_formula.setting(facts, options)
    chip = chip_of(facts)
    limit, source = by_run.catalogue_limit(chip, per_chip=1)
    parts = by_formula.parts(model, asked)
    peak = int(parts["padded_bytes"].sum())
    notes = [
        "Activations by arXiv 2205.05198, counted for this model's own dimensions, without dropout; of the first "
        "pipeline stage. Weights, gradients and optimiser state: bytes per parameter, evenly sharded.",
        "A compiler needs more: temporaries of a layer's backward pass, buffers of collectives, padding. Compile the "
        "model (chipledger compile) for its own account.",
    ]
    if asked.assumed:
        *some, last = asked.assumed
        said = f"{', '.join(some)} and {last}" if some else last
        notes.append(f"Assumed, because nothing tells: {said}.")
    if chip is None:
        notes.append("No chip is named, so there is no limit to compare with: ask with chip=NAME.")
    return MemoryResult(
        subject="formula",
        peak_bytes=peak,
        peak_basis="modelled",
        limit_bytes=limit,
        limit_source=source,
        fits=None if limit is None else peak <= limit,
        program=None,
        parts=parts,
        programs=pd.DataFrame(columns=by_run.PROGRAM_COLUMNS),
        devices=pd.DataFrame(columns=by_run.DEVICE_COLUMNS),
        samples=pd.DataFrame(columns=by_run.SAMPLE_COLUMNS),
        advice=by_formula.advise(model, asked),
        chip=chip.name if chip else None,
        setting={"model": model.name} | asked.to_dict(),
        largest_batch=by_formula.largest_batch(model, asked, limit),
        notes=tuple(notes),
    )
