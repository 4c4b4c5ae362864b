"""The ledger of a serving run: every chip-second from the first sign of the engine to its last.

    held = served + lost work + scheduling + startup + no requests + unattributed
    served = prefill + decode, each useful maths (model FLOPs of the answers / peak) + below roofline
    lost work = bucket padding + rejected speculation + preemption recompute + failed requests + missed objectives

With a record of iterations all of it is told. With requests alone, the engine is busy while a request is in it, and
what of that is not useful maths is not known. With sums alone (a load tool's printout), also where requests beside them
do not tell when they came, neither is when it was idle.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analyzers.base import Facts
from analyzers.flops.peak import Hardware
from analyzers.intervals import Spans, length, paint, union
from analyzers.serving.held_time import perhaps_open, span_of, starts_of
from analyzers.serving.in_engine import Presence, presence, told_of
from analyzers.serving.loads import loads
from analyzers.serving.loads_told_twice import sentences
from analyzers.serving.recorded import recorded
from analyzers.serving.served import Served, has_requests, late, sampled, served
from analyzers.serving.work import Shared, passes, request_flops, shared
from analyzers.subject import known_model
from analyzers.time.training_accounts import Book, leaf, parent
from catalog.models import Model
from errors import QuestionError
from runs.ledger import Account, LedgerError
from runs.tables import Tables

SERVED, BUSY, STARTING, SEEN, OPEN = 1, 2, 3, 4, 5
NAME_IT = "ingest with --model NAME, or with its dimensions in chipledger.json, for useful maths"
UNTOLD = "No answer tells how many tokens it took, of its prompt and generated: useful maths cannot be told."
UNCOUNTED = "No input tells the tokens of each request that was served: useful maths cannot be told."
UNSEEN = "nothing tells whether requests were in the engine"
BETWEEN = "From a load tool's sums: the time between its loads is not counted"
AT_MEAN_LENGTH = f"{BETWEEN}, and useful maths takes every request to be of mean length."
WHENEVER = f"{BETWEEN}; its requests do not tell when they came."
ITERATIONS = (
    "No record of the engine's passes: what its busy time went into is not known beyond useful maths. vLLM "
    "prints one with --enable-logging-iteration-details."
)


def is_serving(tables: Tables) -> bool:
    """Whether the run tells of serving, and not of training."""
    if tables.rows("steps"):
        return False
    return any(tables.rows(t) for t in ("iterations", "stages", "engine")) or has_requests(tables)


def from_serving(tables: Tables, facts: Facts, machine: Hardware, objectives: Mapping[str, float]) -> Book:
    """The accounts; `objectives`: seconds by latency (ttft_s, tpot_s, e2e_s) beyond which an answer came too late.

    Raises QuestionError where no input tells how long the chips were held.
    """
    asked, unknown = _asked(tables), []
    model = known_model(facts, unknown, advice=NAME_IT)
    work = _work(asked, model, objectives)
    found, told_twice = passes(tables), [*recorded(tables, ())[1], *sentences(tables)]
    if not found and asked is None and not tables.rows("engine"):
        return _from_sums(tables, model, machine, None, (*told_twice, *unknown))
    try:
        start, end, left_out = span_of(tables, asked, [(p.start, p.end) for p in found])
    except QuestionError:
        if found or not len(_lasting(tables)):
            raise
        return _from_sums(tables, model, machine, None if asked is None else work, (*told_twice, *unknown))
    within = presence(asked, tables, start, end, [p.replica for p in found])
    # where passes are recorded, a request that was in the engine shows in them
    perhaps, said = perhaps_open(None if found else asked, end)
    starting = starts_of(tables)
    if found:
        time = _passed(found, start, end, within, perhaps, starting, machine)
    else:
        time = _unpassed(start, end, within, perhaps, starting, work, machine)
    time.notes = (*time.notes, *told_twice, *said, *left_out, *unknown)
    return _book(time, work, machine, model, start, end, bool(objectives))


@dataclass(frozen=True)
class Work:
    """Tokens and FLOPs of the requests, as shares: what part of prefill and of decode went where.

    `flops`: of answers in time (prefill, decode), None where no model is known. Shares are of the tokens computed.
    """

    flops: tuple[float, float] | None = None
    failed: tuple[float, float] = (0.0, 0.0)
    missed: tuple[float, float] = (0.0, 0.0)
    all_flops: float | None = None
    notes: tuple[str, ...] = ()


@dataclass
class Time:
    """Chip-seconds by what is known of them."""

    prefill: float = 0.0
    decode: float = 0.0
    lost: dict[str, float] | None = None
    scheduling: float = 0.0
    starting: float = 0.0
    idle: float = 0.0
    unknown: float = 0.0
    unseen: float = 0.0  # of the unknown: whether requests were in the engine is not told
    whole: float = 0.0
    notes: tuple[str, ...] = ()

    def dark(self, otherwise: str) -> Account:
        """What is not known, and where that lies: mostly when nothing tells of requests, else `otherwise`."""
        why = UNSEEN if self.unseen > self.unknown / 2 else otherwise
        return leaf("unattributed", self.unknown, "unattributed", why)


def _asked(tables: Tables) -> Served | None:
    """The requests; None where their load tool kept only some of those that it counts: those are not all the work."""
    found = served(tables) if has_requests(tables) else None
    counted = loads(tables)["completed"].sum(min_count=1)
    kept = None if found is None else sampled(found, counted)
    return None if kept is not None and kept < counted else found


def _work(asked: Served | None, model: Model | None, objectives: Mapping[str, float]) -> Work:
    if asked is None:
        return Work(notes=(UNCOUNTED,) if model is not None else ())
    rows = asked.rows
    begun = rows["completed"] | rows["first_token_ns"].notna() | (rows["output_tokens"] > 0).fillna(False)
    rows = rows[begun.to_numpy(dtype=bool)]
    done = rows["completed"].to_numpy(dtype=bool)
    behind = done & late(rows, objectives)
    prompt = rows["prompt_tokens"].to_numpy(dtype=float, na_value=0.0)
    fresh = np.maximum(prompt - rows["cached_tokens"].to_numpy(dtype=float, na_value=0.0), 0)
    output = rows["output_tokens"].to_numpy(dtype=float, na_value=0.0)

    def shares(which: np.ndarray) -> tuple[float, float]:
        return tuple(float(x[which].sum() / x.sum()) if x.sum() else 0.0 for x in (fresh, output))

    failed, missed = shares(rows["failed"].to_numpy(dtype=bool)), shares(behind)
    flops, every, notes = None, None, asked.notes
    told = rows[["prompt_tokens", "output_tokens"]].notna().all(axis=1).to_numpy(dtype=bool)
    if model is not None and (done & ~told).any():
        notes = (
            *notes,
            UNTOLD
            if not (done & told).any()
            else f"{int((done & ~told).sum()):,} of {int(done.sum()):,} answers do not tell how many tokens they took: "
            "their useful maths is not counted.",
        )
    if model is not None and UNTOLD not in notes:
        prefill, decode = request_flops(model, rows)
        good, done = done & ~behind & told, done & told
        flops, every = (float(prefill[good].sum()), float(decode[good].sum())), float((prefill + decode)[done].sum())
    return Work(flops, failed, missed, every, notes)


def _passed(
    found: list,
    start: int,
    end: int,
    within: Mapping[str, Presence],
    perhaps: Spans,
    starting: Spans,
    machine: Hardware,
) -> Time:
    """Time from passes: of each replica, whose share of the chips is taken to be equal."""
    chips = machine.chips / len(found)
    time = Time(lost={}, whole=(end - start) / 1e9 * machine.chips)
    fitted, known = True, True
    for one in found:
        parts: Shared = shared(one)
        inside = union(Spans(one.start, one.end))
        device = min(float(one.device.sum()), float(length(inside)))
        scale = device / one.device.sum() if one.device.sum() else 0.0  # passes that overlap share their time
        there = within[one.replica]
        layers = [(SEEN, there.seen), (OPEN, perhaps), (STARTING, starting), (BUSY, there.busy), (SERVED, inside)]
        painting = paint(start, end, layers)
        amounts = painting.amounts(6) / 1e9 * chips
        time.prefill += parts.prefill * scale / 1e9 * chips
        time.decode += parts.decode * scale / 1e9 * chips
        for name, ns in parts.lost.items():
            time.lost[name] = time.lost.get(name, 0.0) + ns * scale / 1e9 * chips
        time.unknown += parts.empty * scale / 1e9 * chips + amounts[0] + amounts[OPEN]
        time.unknown += 0.0 if there.own else amounts[BUSY]
        time.unseen += amounts[0] + amounts[OPEN]
        time.scheduling += (amounts[BUSY] if there.own else 0.0) + max(amounts[SERVED] - device / 1e9 * chips, 0.0)
        time.starting += amounts[STARTING]
        time.idle += amounts[SEEN]
        fitted, known = fitted and parts.fitted, known and one.device_known
    notes = [
        "Tokens that no answer needed are charged what they added to their passes, by a fit of time against "
        "tokens to this run's own passes; the tokens of answers share the rest."
        if fitted
        else "All tokens of a pass share its time alike: the passes are too few or too much alike to fit what one "
        "more token costs."
    ]
    if not known:
        notes.append("The record does not say for which part of a pass the device computed: all of it is taken.")
    notes += told_of(within)
    time.notes = tuple(notes)
    return time


def _unpassed(
    start: int,
    end: int,
    within: Mapping[str, Presence],
    perhaps: Spans,
    starting: Spans,
    work: Work,
    machine: Hardware,
) -> Time:
    """Time from requests or samples alone: busy or not."""
    painted = [
        paint(start, end, [(SEEN, p.seen), (OPEN, perhaps), (STARTING, starting), (BUSY, p.busy)])
        for p in within.values()
    ]
    amounts = sum(p.amounts(6) for p in painted) / 1e9 * machine.chips / len(painted)
    time = Time(whole=(end - start) / 1e9 * machine.chips, starting=amounts[STARTING], idle=amounts[SEEN])
    _enter_flops(time, float(amounts[BUSY]), work, machine)
    time.unseen = float(amounts[0] + amounts[OPEN])
    time.unknown += time.unseen
    time.notes = (ITERATIONS, *told_of(within))
    return time


def _enter_flops(time: Time, busy: float, work: Work, machine: Hardware) -> None:
    """Useful maths is all that is known of busy time; never more of it than there is."""
    peak = machine.peak_flops_per_s
    prefill, decode = (f / peak for f in work.flops) if work.flops and peak else (0.0, 0.0)
    fits = min(1.0, busy / (prefill + decode)) if prefill + decode else 0.0
    time.prefill, time.decode = prefill * fits, decode * fits
    time.unknown = max(busy - time.prefill - time.decode, 0.0)


def _lasting(tables: Tables) -> pd.DataFrame:
    """The loads of which a tool tells how long they took."""
    rows = loads(tables)
    return rows[(rows["duration_s"] > 0).fillna(False).to_numpy(dtype=bool)]


def _from_sums(
    tables: Tables, model: Model | None, machine: Hardware, work: Work | None, unknown: tuple[str, ...]
) -> Book:
    """From what a load tool printed: durations, and tokens in all where no `work` of single requests is told."""
    rows = _lasting(tables)
    if not len(rows):
        raise QuestionError(
            "no input says how long the chips were held", advice="Add the tool's own summary with its duration."
        )
    busy = float(rows["duration_s"].sum()) * machine.chips
    time = Time(whole=busy, notes=(AT_MEAN_LENGTH if work is None else WHENEVER, ITERATIONS, *unknown))
    work = _work_of_sums(rows, model) if work is None else work
    _enter_flops(time, busy, work, machine)
    return _book(time, work, machine, model, None, None, False)


def _work_of_sums(rows: pd.DataFrame, model: Model | None) -> Work:
    """Useful maths of loads of which only sums are told. Columns: completed, input_tokens, output_tokens."""
    if model is None:
        return Work()
    if not rows[["completed", "input_tokens", "output_tokens"]].notna().all(axis=None):
        return Work(notes=(UNCOUNTED,))
    count = rows["completed"].astype(float).clip(lower=1)
    mean = pd.DataFrame(
        {
            "prompt_tokens": rows["input_tokens"] / count,
            "cached_tokens": 0.0,
            "output_tokens": rows["output_tokens"] / count,
        }
    )
    prefill, decode = request_flops(model, mean)
    flops = float((prefill * count).sum()), float((decode * count).sum())
    return Work(flops=flops, all_flops=sum(flops))


def _book(
    time: Time, work: Work, machine: Hardware, model: Model | None, start: int | None, end: int | None, judged: bool
) -> Book:
    parts = _accounts_of_passes(time, work, machine) if time.lost is not None else _accounts_of_flops(time, machine)
    account = parent(
        "held",
        [
            *parts,
            leaf(
                "scheduling", time.scheduling, "measured", "requests were in the engine and the device did not compute"
            ),
            leaf("program_startup", time.starting, "measured", "recorded phases before the engine could serve"),
            leaf("no_requests", time.idle, "measured", "no request was in the engine"),
        ],
        "chips x time held",
    )
    if abs(account.chip_seconds - time.whole) > 1e-6 * time.whole:
        raise LedgerError(f"serving accounts hold {account.chip_seconds} of {time.whole} chip-seconds")
    notes = [*time.notes, *work.notes]
    if model is None and not any(NAME_IT in note for note in notes):
        notes.append("No model is known, so useful maths cannot be told. Ingest with --model.")
    elif not machine.peak_flops_per_s:
        notes.append("The chip's peak is not known, so useful maths cannot be told. Say which it was under Facts.")
    if not judged and time.lost is not None:
        notes.append(
            "Every answer counts as served. With objectives (--option ttft_s=..., tpot_s=..., e2e_s=...) "
            "those that came too late are lost work."
        )
    return Book(account, work.all_flops, start, end, None, tuple(notes))


def _accounts_of_passes(time: Time, work: Work, machine: Hardware) -> list[Account]:
    peak, phases, failed, missed = machine.peak_flops_per_s, [], 0.0, 0.0
    for number, (name, seconds) in enumerate((("prefill", time.prefill), ("decode", time.decode))):
        failed += seconds * work.failed[number]
        missed += seconds * work.missed[number]
        kept = max(seconds * (1 - work.failed[number] - work.missed[number]), 0.0)
        useful = min(work.flops[number] / peak, kept) if work.flops and peak else 0.0
        phases.append(_phase(name, kept, useful, machine))
    lost = [leaf(n, x, "derived", "what its tokens added to their passes") for n, x in time.lost.items()]
    lost += [
        leaf("failed_requests", failed, "derived", "its share of the tokens computed"),
        leaf("missed_objective", missed, "derived", "its share of the tokens computed"),
    ]
    empty = time.dark("passes in which the record counts no token")
    return [parent("served", phases), parent("lost_work", lost), empty]


def _phase(name: str, seconds: float, useful: float, machine: Hardware) -> Account:
    if not useful:
        return leaf(name, seconds, "derived", "its tokens' share of the passes")
    return parent(
        name,
        [
            leaf("useful_maths", useful, "derived", f"model FLOPs / {machine.peak_source}"),
            leaf("below_roofline", seconds - useful, "derived", "its tokens' share of the passes, less useful maths"),
        ],
    )


def _accounts_of_flops(time: Time, machine: Hardware) -> list[Account]:
    flops = f"model FLOPs / {machine.peak_source}"
    phases = [
        parent(name, [leaf("useful_maths", seconds, "derived", flops)])
        for name, seconds in (("prefill", time.prefill), ("decode", time.decode))
    ]
    busy = time.dark("requests were in the engine; no record of its passes")
    return [parent("served", phases), busy]
