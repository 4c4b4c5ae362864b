"""What was said of a run and what its files show, where the two cannot both be: kept, and shown with both numbers."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analyzers.base import Facts, fact
from analyzers.flops.formats import format_of
from analyzers.flops.peak import peak
from analyzers.subject import SEQUENCE_FACTS, chip_of, devices_per_chip, model_of, sequence_of, slices_of
from app.facts.evidence import Shown, devices_of_files, shown
from app.facts.kinds import FACTS, written
from app.facts.settled import IN_PROFILES, shown_devices
from catalog.chip_count import chips_seen
from catalog.flops import NAMES, flops_per_token
from errors import ChipledgerError, QuestionError
from errors import format as fmt
from runs.registry import Registry
from runs.run import FactValue, Run

APART = 0.25  # relative: a count of FLOPs further than this from every convention is of another model
COMPARED = ("chip", "model", "precision", "topology", "slices", "parallelism", "chips_per_host")


@dataclass(frozen=True)
class Contradiction:
    """`fact`: the one to mend. `sentence`: what was said, what the files show, and by which the run is told."""

    fact: str
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        return {"fact": self.fact, "sentence": self.sentence}


def contradictions(run: Run, registry: Registry) -> tuple[Contradiction, ...]:
    """All that holds of what was said of this run; none where nothing was said."""
    said = {name: f.value for name, f in _said(run, registry).items()}
    if not said:
        return ()
    seen, facts = shown(run), run.manifest.facts
    found = [*_chips(run, said, facts, seen), *_others(run, said), *_length(run, said)]
    with contextlib.suppress(ChipledgerError):  # who looks at the run is told of its damage
        found += [*_rate(run, said, facts, seen), *_cost(said, facts, seen)]
    return tuple(found)


def _said(run: Run, registry: Registry) -> Facts:
    """As it was said, before the number of chips was settled."""
    told = registry.said([run.run_id]).get(run.run_id)
    return told.facts if told else {}


def _chips(run: Run, said: dict[str, Any], facts: Facts, seen: Shown) -> Iterator[Contradiction]:
    stated = said.get("chips")
    if stated is None:
        return
    per_chip, you = devices_per_chip(facts), f"You said {fmt.count(stated, 'chip')}"
    profiled = chips_seen(seen.devices, per_chip)
    if stated < profiled:
        yield Contradiction("chips", f"{you}; the profiles show {profiled:,}. Told by {profiled:,}.")
        return
    for held, how in _held(run, facts, seen, per_chip):
        if held != stated:
            yield Contradiction("chips", f"{you}; the files show {held:,}{how and f' ({how})'}. Told by {stated:,}.")
            return
    for whole, of in (
        (_product(facts, "topology") * (slices_of(facts) or 1), "its slice has"),
        (-(-_product(facts, "parallelism") // per_chip), "its axes of parallelism multiply to"),
    ):
        if whole and whole != stated:
            yield Contradiction("chips", f"{you}; {of} {whole:,}. Told by {stated:,}.")


def _held(run: Run, facts: Facts, seen: Shown, per_chip: int) -> Iterator[tuple[int, str]]:
    """(chips, how they show) by the files, the surest first."""
    own = run.written.facts.get("chips")
    part = own is not None and own.source.endswith(IN_PROFILES) and len(seen.hosts) <= 1  # says nothing of other hosts
    if own is not None and isinstance(own.value, int | float) and not part:
        yield int(own.value), _by_hosts(int(own.value), len(seen.hosts)) or own.source
    if devices := devices_of_files(facts):
        yield -(-devices // per_chip), f"the log counts {fmt.count(devices, 'device')}"
    known = chip_of(facts)
    usual = fact(facts, "chips_per_host") or (known and known.value("chips_per_host"))
    if len(seen.hosts) > 1 and usual:
        yield len(seen.hosts) * int(usual), f"{len(seen.hosts):,} hosts of {int(usual):,}"


def _by_hosts(chips: int, hosts: int) -> str:
    return f"{hosts:,} hosts of {chips // hosts:,}" if hosts > 1 and chips % hosts == 0 else ""


def _product(facts: Facts, name: str) -> int:
    """Of a shape such as 4x4x8 or of axes; 0 where they are not all known."""
    value = fact(facts, name)
    if isinstance(value, dict):
        sizes = list(value.values())
    else:
        sizes = [int(n) if n.isdecimal() else 0 for n in str(value or "").rpartition(":")[2].split("x")]
    return math.prod(sizes) if sizes and all(type(n) is int and n > 0 for n in sizes) else 0


def _others(run: Run, said: dict[str, Any]) -> Iterator[Contradiction]:
    """Facts of which the files state another value."""
    titles = {f.name: f.title for f in FACTS}
    for name in COMPARED:
        own = run.written.facts.get(name)
        if name in said and own is not None and not _same(name, own.value, said[name]):
            you, files = written(said[name]), written(own.value)
            told = f"{titles[name]}: you said {you}; {own.source} says {files}. Told by {you}."
            yield Contradiction(name, told)


def _same(name: str, one: Any, other: Any) -> bool:
    """Whether two values mean the same, by whichever names."""
    if name == "precision":
        return format_of(one) == format_of(other)
    if name == "chip":
        first, second = (chip_of({"chip": _as_fact(v)}) for v in (one, other))
        return str(one) == str(other) or (first is not None and second is not None and _one_of(first.name, second.name))
    if name == "model":
        try:
            return model_of({"model": _as_fact(one)}) == model_of({"model": _as_fact(other)})
        except QuestionError:
            return True  # a name of the user's own: what was said tells what it is
    if name == "topology":
        return str(one).rpartition(":")[2] == str(other).rpartition(":")[2]
    return one == other


def _one_of(first: str, second: str) -> bool:
    """Whether a chip is the other, or one of those that could not be told apart."""
    return second in first.split(" or ") or first in second.split(" or ")


def _as_fact(value: Any) -> FactValue:
    return FactValue(value, "declared", "")


def _length(run: Run, said: dict[str, Any]) -> Iterator[Contradiction]:
    own = next((run.written.facts[n] for n in SEQUENCE_FACTS if n in run.written.facts), None)
    if "seq" in said and own is not None and own.value != said["seq"]:
        you = f"You said {said['seq']:,} tokens in a sequence"
        yield Contradiction("seq", f"{you}; {own.source} says {written(own.value)}. Told by {said['seq']:,}.")


def _rate(run: Run, said: dict[str, Any], facts: Facts, seen: Shown) -> Iterator[Contradiction]:
    """A rate that the log prints and the chip that was said cannot reach."""
    if "chip" not in said or not seen.tflops_per_s or shown_devices(run):
        return
    top, _ = peak(run.tables, facts)
    rate = seen.tflops_per_s * 1e12
    if top and rate > top / devices_per_chip(facts):
        most = fmt.flops_rate(top / devices_per_chip(facts))
        told = f"Chip: you said {said['chip']}, of which a device does {most} at most"
        yield Contradiction("chip", f"{told}; the log prints {fmt.flops_rate(rate)} a device. Told by {said['chip']}.")


def _cost(said: dict[str, Any], facts: Facts, seen: Shown) -> Iterator[Contradiction]:
    """A model, or its sequences, of which a token cannot take the FLOPs that the log counts."""
    if not {"model", "seq"} & said.keys() or not seen.tflops_per_s or not seen.tokens_per_s:
        return
    of, length = model_of(facts), sequence_of(facts)
    if of is None or length is None:
        return
    per_token = seen.tflops_per_s * 1e12 / seen.tokens_per_s
    counts = [flops_per_token(of, length, name).total for name in NAMES]
    if min(counts) * (1 - APART) <= per_token <= max(counts) * (1 + APART):
        return
    low, high = fmt.number(min(counts) / 1e9), fmt.number(max(counts) / 1e9)
    what = f"{of.name} in sequences of {length:,}, which takes {low} to {high} GFLOPs a token"
    name = "model" if "model" in said else "seq"
    yield Contradiction(name, f"You said {what}; the log counts {fmt.number(per_token / 1e9)}.")
