"""Device memory in words: its verdict, and what holds it as a terminal prints it."""

from typing import Any

import pandas as pd

from analyzers.device.memory import MemoryResult
from app.questions.memory import snapshot_words
from app.words import Table, Verdict, headline, model_name, short
from errors import format as fmt

SHOWN = 20
CATEGORIES: dict[str, str] = {
    "argument": "Inputs",
    "output": "Outputs",
    "constant": "Constants",
    "temporary": "Temporaries",
    "saved": "Saved activations",
    "fragmentation": "Fragmentation",
    "untold": "Not told",
    "weights": "Weights",
    "gradients": "Gradients",
    "master_weights": "Master weights",
    "moments": "Adam's moments",
    "activations": "Activations",
    "logits": "Logits",
}


def title(category: str) -> str:
    return CATEGORIES.get(category, category)


def verdict(result: MemoryResult) -> Verdict:
    """What a device holds at its fullest, of what it may, the largest part, and what the best advice gives back."""
    if result.snapshot is not None:
        return headline(*snapshot_words.sentences(result), _advice(result))
    if result.subject == "formula":
        return headline(*_formula(result), _largest(result), _advice(result))
    if result.subject == "compiled":
        return headline(_compiled(result), _largest(result), _advice(result))
    if result.peak_basis == "measured":
        seen = "At the samples the" if result.counted_bytes else "The"
        text = f"{seen} fullest device held {fmt.size(result.peak_bytes)}"
        if result.limit_bytes:
            text += f" of the {fmt.size(result.limit_bytes)} it may use ({_share(result)})"
        return headline(f"{text}.", _counted(result), _largest(result), _advice(result))
    text = f"{short(result.program)} needs {fmt.size(result.peak_bytes)} on each device at its fullest"
    if result.limit_bytes:
        text += f", of the {fmt.size(result.limit_bytes)} that a device lets it use ({_share(result)})"
    return headline(f"{text}.", _largest(result), _advice(result))


def _counted(result: MemoryResult) -> str:
    """What samples missed, by the allocators' own count."""
    if result.counted_bytes is None:
        return ""
    of = f" ({fmt.whole_share(result.counted_bytes / result.limit_bytes)})" if result.limit_bytes else ""
    return f"Before or between them a device held up to {fmt.size(result.counted_bytes)}{of}, as its allocator counted."


def _share(result: MemoryResult) -> str:
    return fmt.whole_share(result.peak_bytes / result.limit_bytes)


def _formula(result: MemoryResult) -> tuple[str, ...]:
    said = result.setting
    chips = "one chip" if said["chips"] == 1 else f"each of {said['chips']:,} chips"
    text = f"Training {short(model_name(said['model']))} holds {fmt.size(result.peak_bytes)} on {chips} by formula"
    if result.limit_bytes is None:
        return (f"{text}.",)
    text += f", of {fmt.size(result.limit_bytes)} on {article(result.chip)} {short(result.chip)}"
    if result.fits:
        batch = result.largest_batch or 0
        more = f" up to {fmt.count(batch, 'sequence')} at a time would." if batch > said["batch"] else ""
        return (f"{text}: it fits{';' + more if more else '.'}",)
    if result.ran:
        all_the_same = "The run took its steps all the same, so it recomputes or shards more than its inputs tell."
        return f"{text}: more than there is.", all_the_same
    return (f"{text}: it does not fit.",)


def article(chip: str | None) -> str:
    """`an` before names that are said letter by letter from a vowel (`an H100`, `an MI300X`), else `a`."""
    name = chip or ""
    return "an" if name[:1] in set("AEFHILMNORSX") else "a"


def _compiled(result: MemoryResult) -> str:
    if result.fits is False:
        if result.peak_bytes is None or result.limit_bytes is None:
            return "It does not fit: the compiler refused the program for lack of device memory."
        return (
            f"It does not fit: the compiler needs {fmt.size(result.peak_bytes)} on a device and may use "
            f"{fmt.size(result.limit_bytes)}."
        )
    if result.peak_bytes is None:
        if result.program is None:
            return "How much memory its program needs, no input tells."
        inputs = fmt.size(result.parts_bytes)
        return f"The inputs of {short(result.program)} take {inputs} on a device; its peak is not told."
    text = f"{short(result.program)} needs {fmt.size(result.peak_bytes)} on a device"
    if result.limit_bytes:
        return f"It fits: {text} of the {fmt.size(result.limit_bytes)} it may use ({_share(result)})."
    return f"{text}."


def _largest(result: MemoryResult) -> str:
    if not len(result.parts):
        return ""
    table = result.categories()
    if len(table) < 2:
        return ""
    first = table.iloc[0]
    part = fmt.whole_share(first["padded_bytes"] / result.parts_bytes)
    of = f" of {result.program}" if result.peak_basis == "measured" and result.program else ""
    verb = "is" if first["category"] == "fragmentation" else "are"
    text = (
        f"{title(first['category'])} {verb} {part} of it"
        if not of
        else (
            f"The largest program, {short(result.program)}, needs {fmt.size(result.parts_bytes)}: "
            f"{title(first['category']).lower()} {verb} {part}"
        )
    )
    padding = result.padding_bytes or 0
    if padding > 0.01 * result.parts_bytes:
        text += f", and padding {fmt.whole_share(padding / result.parts_bytes)}"
    return f"{text}."


WORTH: dict[str, str] = {
    "shard": "Sharding what devices hold alike",
    "remat": "Recomputing saved activations",
    "padding": "Layouts without padding",
    "donate": "Donating inputs",
    "fragmentation": "Tighter packing",
    "segments": "Expandable segments",
    "selective": "Selective recomputation",
    "sequence_parallel": "Sequence parallelism",
    "fsdp": "FSDP",
}


def _advice(result: MemoryResult) -> str:
    if not result.advice:
        return ""
    best = result.advice[0]
    what = "Full recomputation" if best.what == "remat" and result.subject == "formula" else WORTH[best.what]
    return f"{what} would give back {'up to ' if best.at_most else ''}{fmt.size(best.bytes)}."


def table(result: MemoryResult) -> Table:
    """The largest buffers, or accounts by formula."""
    if result.snapshot is not None:
        return snapshot_words.table(result)
    parts = result.parts.head(SHOWN)
    rows = tuple(
        (
            _text(row.name_),
            title(_text(row.category)),
            fmt.size(_number(row.bytes)),
            fmt.size(_number(row.padded_bytes)),
            fmt.NO_VALUE if pd.isna(row.copies) else f"{int(row.copies):,}",
            _text(row.source, row.shape),
        )
        for row in parts.rename(columns={"name": "name_"}).itertuples()
    )
    return Table(("buffer", "category", "logical", "padded", "copies", "source"), rows, right=(2, 3, 4))


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def _text(*values: object) -> str:
    """The first of them that is known."""
    return next((v for v in values if isinstance(v, str)), fmt.NO_VALUE)
