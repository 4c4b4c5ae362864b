"""What may be guessed of a fact that no file states: each with its reason, and never taken without being asked."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from analyzers.base import Facts, fact
from analyzers.flops.formats import PRECISIONS, format_said
from analyzers.subject import chip_of, devices_per_chip, model_of, sequence_of
from app.facts.evidence import Shown, devices_of_files, seen_in
from app.facts.names import chips_named, models_named, slices_named
from catalog.chips import OR, Chip, chips
from catalog.flops import flops_per_token
from catalog.models import models, parameters
from catalog.published import published
from errors import InputError, QuestionError
from errors import format as fmt
from runs.registry import PRICE
from runs.run import Run
from runs.tables import frame

LEAST, MOST = 0.10, 0.85  # shares of a peak that jobs reach: a chip of which a rate would be another is not offered
ALIKE = 0.03  # relative: rates of a published run this near are the same job's
EXACT = 0.005  # relative: printed numbers have three digits
OFFERED = 5  # guesses of one fact at most
LENGTHS = tuple(1 << n for n in range(9, 21))  # tokens of a sequence that are tried
ON_TPU = (
    "maxtext",
    "maxtext_metrics",
    "goodput_log",
    "jetstream",
    "tpu_info",
)  # collectors whose jobs mostly run there
ON_GPU = (
    "megatron",
    "torchtitan",
    "llm_c",
    "deepspeed",
    "hf_trainer",
    "trainer_state",
    "dllogger",
    "verl",
    "nanogpt",
    "nanotron",
    "slurm_sacct",
    "nvrx",
    "nccl_inspector",
    "dcgm",
    "nvidia_smi",
    "flight_recorder",
    "chakra",
    "mllog",
)


@dataclass(frozen=True)
class Guess:
    """`reason`: a clause that tells why. `certain`: it follows from what the files state, and may be chosen beforehand;
    else it is only offered."""

    value: Any
    reason: str
    certain: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "reason": self.reason, "certain": self.certain}


Found = Iterator[Guess]


def guesses(run: Run, name: str) -> tuple[Guess, ...]:
    """The guesses of this fact, the likeliest first, each value once; none where nothing tells."""
    try:
        return _guessed(run, name, run.writing)
    except InputError:  # damaged, or in the bin just now: not kept, for it may be brought back
        return ()


@lru_cache(maxsize=2_000)
def _guessed(run: Run, name: str, writing: tuple[str, int, str]) -> tuple[Guess, ...]:
    guess = GUESSES.get(name)
    found: dict[str, Guess] = {}
    for one in guess(run, run.manifest.facts, seen_in(run)) if guess else ():
        known = found.setdefault(str(one.value), one)
        if one.certain and not known.certain:
            found[str(one.value)] = one
    return tuple(sorted(found.values(), key=lambda g: not g.certain))[:OFFERED]


def _chips(run: Run, facts: Facts, seen: Shown) -> Found:
    said = fact(facts, "chip")
    if isinstance(said, str) and OR in said:
        for name in said.split(OR):
            yield Guess(name, f"the profile fits {said.replace(OR, ' and ')} alike")
    yield from _by_peak(facts)
    for name, word, where in chips_named(run, seen.hosts):
        yield Guess(name, f"{where} holds {word!r}")
    if seen.tflops_per_s:
        yield from _by_published(facts, seen.tflops_per_s)
        yield from _by_rate(run, facts, seen.tflops_per_s)


def _by_peak(facts: Facts) -> Found:
    """Chips whose peak the log printed."""
    stated = fact(facts, "peak_flops_per_s")
    if not isinstance(stated, int | float) or stated <= 0:
        return
    fits = [c.name for c in chips().values() if (p := _peak_of_device(c)) and abs(stated / p - 1) <= EXACT]
    for name in fits:
        yield Guess(name, f"the files state its peak, {fmt.flops_rate(stated)} a device", len(fits) == 1)


def _by_published(facts: Facts, rate: float) -> Found:
    try:
        of = model_of(facts)
    except QuestionError:
        return
    for row in published() if of else ():
        near = row.flops_per_s_per_chip and abs(rate * 1e12 / row.flops_per_s_per_chip - 1) <= ALIKE
        if near and of and row.model == of.name:
            there = f"a published run of {row.model} on {row.chips:,} × {row.chip} reached"
            yield Guess(row.chip, f"{there} {fmt.flops_rate(row.flops_per_s_per_chip)}, this one {_tflops(rate)}")


def _by_rate(run: Run, facts: Facts, rate: float) -> Found:
    """Chips of which this rate is a share that jobs reach, the smallest first: those of published runs, or any."""
    ran = {row.chip for row in published()}
    allowed = [c for c in chips().values() if _may_be(c, str(fact(facts, "hardware") or ""), run)]
    word = format_said(facts) or "bf16"
    peaks = sorted((p, c.name) for c in allowed if (p := _peak_of_device(c, PRECISIONS[word])))
    below = [name for p, name in peaks if p < rate * 1e12 and name in ran]
    fits = [(p, name) for p, name in peaks if LEAST <= rate * 1e12 / p <= MOST]
    for p, name in [known for known in fits if known[1] in ran] or fits:
        smaller = f", and more than {below[-1]} has" if below else ""
        yield Guess(name, f"{_tflops(rate)} a device is {fmt.whole_share(rate * 1e12 / p)} of its peak{smaller}")


def _may_be(one: Chip, hardware: str, run: Run) -> bool:
    """Whether it is of the kind that the files speak of: a TPU, or none."""
    used = {str(source.get("collector")) for source in run.written.sources}
    tpu = hardware.startswith("tpu") or (not hardware and bool(used & {*ON_TPU}))
    gpu = hardware.startswith("gpu") or (not hardware and bool(used & {*ON_GPU}))
    return not ((tpu and one.vendor != "Google") or (gpu and one.vendor == "Google"))


def _peak_of_device(one: Chip, of: str = PRECISIONS["bf16"]) -> float | None:
    """Its peak in the format that ran; of a chip without that, in the usual one, as MFU is measured."""
    value = one.value(of) or one.value("bf16_flops_per_s") or one.value("fp16_flops_per_s")
    return value / (one.value("jax_devices_per_chip") or 1) if value else None


def _tflops(rate: float) -> str:
    return fmt.flops_rate(rate * 1e12)


def _count(run: Run, facts: Facts, seen: Shown) -> Found:
    per_chip, known = devices_per_chip(facts), chip_of(facts)
    if devices := devices_of_files(facts):
        how = f", {per_chip} to a chip of {known.name}" if known and per_chip > 1 else ", one to a chip"
        yield Guess(-(-devices // per_chip), f"the log counts {fmt.count(devices, 'device')}{how}", known is not None)
    if monitored := _monitored(run):
        yield Guess(monitored, f"a monitor took samples of the memory of {fmt.count(monitored, 'device')}")
    for name, word, where in slices_named(run, seen.hosts):
        yield Guess(name.chips, f"{where} holds {word!r}, a slice of {fmt.count(name.chips, 'chip')}")
    axes = fact(facts, "parallelism")
    if isinstance(axes, dict) and axes and all(type(v) is int and v > 0 for v in axes.values()):
        whole = math.prod(axes.values())
        if whole > 1:
            yield Guess(-(-whole // per_chip), f"its axes of parallelism multiply to {fmt.count(whole, 'device')}")
    beside = fact(facts, "chips_of_host")
    if isinstance(beside, int) and beside > 0:
        told = f"the machine has {fmt.count(beside, 'chip')}, of which some may be other jobs'"
        yield Guess(beside * max(len(seen.hosts), 1), told)
    usual = fact(facts, "chips_per_host") or (known and known.value("chips_per_host"))
    if seen.hosts and isinstance(usual, int | float):
        each = int(usual)
        whose = f"a host of {known.name} has" if known else "a host has"
        told = f"the files name {fmt.count(len(seen.hosts), 'host')}, and {whose} {fmt.count(each, 'chip')}"
        yield Guess(len(seen.hosts) * each, told)


def _monitored(run: Run) -> int:
    """Devices whose memory was sampled outside of any profile."""
    rows = frame(run.tables, "memory", ["capture", "host", "device"], [("kind", "==", "bytes_in_use")])
    return len(rows[rows["capture"].isna() & rows["device"].notna()].drop_duplicates(["host", "device"]))


def _models(run: Run, facts: Facts, seen: Shown) -> Found:
    billions = fact(facts, "parameters_billion")
    stated = fact(facts, "parameters") or (billions * 1e9 if isinstance(billions, int | float) else None)
    if isinstance(stated, int | float) and stated > 0:
        fits = [m.name for m in models().values() if abs(parameters(m).total / stated - 1) <= EXACT]
        for name in fits:
            yield Guess(
                name, f"the log counts {fmt.number(stated / 1e9)} billion parameters, as it has", len(fits) == 1
            )
    for name, word, where in models_named(run, fact(facts, "model")):
        yield Guess(name, f"{where} holds {word!r}")


def _lengths(run: Run, facts: Facts, seen: Shown) -> Found:
    batch = fact(facts, "per_device_batch_size")
    if seen.tokens_per_step and isinstance(batch, int | float) and batch > 0:
        length = seen.tokens_per_step / batch
        if abs(length / max(round(length), 1) - 1) <= EXACT:
            tokens = f"a step of a device has {fmt.number(seen.tokens_per_step)} tokens"
            yield Guess(round(length), f"{tokens} in {fmt.number(batch)} sequences", _even(length))
    try:
        of = model_of(facts)
    except QuestionError:
        return
    if of and seen.tflops_per_s and seen.tokens_per_s:
        per_token = seen.tflops_per_s * 1e12 / seen.tokens_per_s
        for length in LENGTHS:
            if any(abs(per_token / flops_per_token(of, length, c).total - 1) <= EXACT for c in ("causal", "noncausal")):
                cost = f"the log counts {fmt.number(per_token / 1e9)} GFLOPs a token"
                yield Guess(length, f"{cost}, as {of.name} takes in such sequences")


def _even(length: float) -> bool:
    """Whether a length is one that people choose: rounded rates leave others open."""
    return round(length) % 128 == 0


def _batches(run: Run, facts: Facts, seen: Shown) -> Found:
    batch, devices = fact(facts, "per_device_batch_size"), devices_of_files(facts)
    held = fact(facts, "chips")
    if devices is None and isinstance(held, int | float):
        devices = int(held) * devices_per_chip(facts)
    if isinstance(batch, int | float) and devices:
        again = fact(facts, "gradient_accumulation_steps") or 1
        whole = batch * devices * again
        if whole == int(whole) >= 1:
            more = f", {again} times" if again != 1 else ""
            yield Guess(int(whole), f"{fmt.number(batch)} sequences on each of {devices:,} devices{more}", True)
    length = sequence_of(facts)
    if length and devices and seen.tokens_per_step:
        whole = seen.tokens_per_step * devices / length
        if whole >= 1 and abs(whole / round(whole) - 1) <= EXACT:
            yield Guess(round(whole), f"a step has {fmt.number(seen.tokens_per_step * devices)} tokens in all")


def _prices(run: Run, facts: Facts, seen: Shown) -> Found:
    known = chip_of(facts)
    if known and (price := known.price_suggestion):
        when = f", {price.as_of}" if price.as_of else ""
        yield Guess(price.usd_per_chip_hour, f"{price.basis} price of {known.name}{when}; nobody verified it")


GUESSES: dict[str, Callable[[Run, Facts, Shown], Found]] = {
    "chip": _chips,
    "chips": _count,
    "model": _models,
    "seq": _lengths,
    "global_batch": _batches,
    PRICE: _prices,
}
