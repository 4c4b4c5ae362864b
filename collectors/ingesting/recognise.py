"""Which collector reads a file, and what of it: its bytes, or the lines of output that an export of logs wraps."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from collectors import ANY_LOG, TEXT_LOGS, collector, each
from collectors.base import Item, Rows
from collectors.ingesting.entry_tables import is_documents, is_table
from collectors.ingesting.holes import filled
from collectors.ingesting.log_export import LinesTakenOut, is_export, take_out
from collectors.ingesting.newest_first import newest_first, turn_round
from collectors.ingesting.stern import is_stern, take_off
from collectors.ingesting.unpack import BROKEN, SafeSource
from collectors.reading.textlog import is_text_log
from errors import InputError
from errors import format as fmt

SURE = 0.5  # a file goes to no collector less sure of it than this
CERTAIN = 0.8  # no second look is needed
WHOLLY = 1.0  # none of those that are asked later can be surer
DEEP_BYTES = 1 << 24  # of a log that its first bytes leave in doubt: environments and warnings may fill megabytes
SAMPLE_BYTES = 1 << 22  # of an export that are looked at before all of it is
CARRIED = ("nvrx", ANY_LOG)  # their lines stand in the logs of other programs too


class DeepSource(SafeSource):
    """A source that shows more of itself than the first look takes."""

    head_bytes = DEEP_BYTES


@dataclass(frozen=True)
class Together:
    """Reads the lines that an export holds with one collector, and its goodput entries with theirs."""

    lines: "ModuleType | Together"

    @property
    def NAME(self) -> str:  # noqa: N802 - what a collector has
        return self.lines.NAME

    def read(self, source: SafeSource) -> Iterator[Item]:
        yield from self.lines.read(source)
        for item in collector("goodput_log").read(SafeSource(source.path, source.name, source.index)):
            if not (isinstance(item, Rows) and item.table == "evidence"):  # told by the lines already
                yield item


@dataclass(frozen=True)
class Recognised:
    """How sure the surest collector is of a file, which that is, what it is to read, and what is to be said of it."""

    score: float
    collector: ModuleType | Together
    source: SafeSource
    notes: tuple[str, ...] = ()

    def is_one_of(self, names: Iterable[str]) -> bool:
        """Whether one of these collectors reads it by itself."""
        return isinstance(self.collector, ModuleType) and self.collector.NAME in names


def recognise(found: SafeSource, scratch: Path, check: Callable[[], None] = lambda: None) -> Recognised:
    """The collector for a file. `scratch`: a folder for lines that are taken out of exports."""
    best = _surest(found, each())
    if is_table(found) or is_documents(found) or (best.score < 0.9 and is_export(found)):
        best = max(_taken_out(found, best.score < SURE, scratch, check), best, key=lambda one: one.score)
    elif (best.score < CERTAIN or best.is_one_of(CARRIED)) and is_text_log(found):
        best = _deeper(found, best)
    if best.score < SURE and b"\0" in found.head:
        best = max(_filled(found, scratch, check), best, key=lambda one: one.score)
    if best.source is found and (best.score < SURE or best.is_one_of((*TEXT_LOGS, ANY_LOG))) and is_stern(found):
        best = _by_pod(found, best, scratch, check)
    if best.score >= SURE and best.is_one_of((*TEXT_LOGS, ANY_LOG)) and newest_first(best.source):
        best = _turned(best, scratch, check)
    # A fresh source, without the head that sniffing left in memory.
    return replace(best, source=replace(best.source))


def _by_pod(found: SafeSource, best: Recognised, scratch: Path, check: Callable[[], None]) -> Recognised:
    """The same with the pods that stern printed before its lines as all readers know them."""
    out = _unused(scratch)
    try:
        said = take_off(found, out, check)
    except (*BROKEN, InputError):  # whoever reads it says so
        out.unlink(missing_ok=True)
        return best
    sure = _surest(DeepSource(out, found.name), _named((*TEXT_LOGS, ANY_LOG)))
    if sure.score < max(SURE, best.score):  # what stood before its lines were words of theirs
        out.unlink()
        return best
    lines = LinesTakenOut(found.path, found.name, found.index, out)
    return replace(sure, source=lines, notes=(*best.notes, *(f"{found.name}: {more}" for more in said)))


def _turned(best: Recognised, scratch: Path, check: Callable[[], None]) -> Recognised:
    """The same with its oldest line first."""
    source = best.source
    out = _unused(scratch)
    try:
        if (said := turn_round(source, out, check)) is None:
            return best
    except (*BROKEN, InputError):  # whoever reads it says so
        out.unlink(missing_ok=True)
        return best
    note = f"{source.name}: its lines stand newest first; they were read from the last to the first"
    lines = LinesTakenOut(source.path, source.name, source.index, out)
    return replace(best, source=lines, notes=(*best.notes, note, *(f"{source.name}: {more}" for more in said)))


def _filled(found: SafeSource, scratch: Path, check: Callable[[], None]) -> Recognised:
    """The lines of a log between the holes in it, where a collector of logs knows what they are."""
    nothing, out = Recognised(0.0, collector(ANY_LOG), found), _unused(scratch)
    try:
        zeros = filled(found, out, check)
    except (*BROKEN, InputError):  # whoever reads it says so
        zeros = None
    sure = _surest(DeepSource(out, found.name), _named((*TEXT_LOGS, ANY_LOG))) if zeros is not None else nothing
    if zeros is None or sure.score < SURE:
        out.unlink(missing_ok=True)
        return nothing
    note = (
        f"{found.name}: zeros ({fmt.count(zeros, 'byte')}) were left out; where many stand together, as a machine that "
        "goes down or a log that is cut while it is written to leaves them, with what stood before them in their line"
    )
    return Recognised(sure.score, sure.collector, LinesTakenOut(found.path, found.name, lines=out), (note,))


def _unused(scratch: Path) -> Path:
    return scratch / f"lines-{len(list(scratch.iterdir()))}"


def _surest(source: SafeSource, collectors: Iterable[ModuleType]) -> Recognised:
    """The surest, of equally sure ones the first."""
    best: Recognised | None = None
    for one in collectors:
        score = one.sniff(source)
        if best is None or score > best.score:
            best = Recognised(score, one, source)
        if score >= WHOLLY:
            break
    assert best is not None, "there are collectors"
    return best


def _named(names: Iterable[str]) -> Iterator[ModuleType]:
    return map(collector, names)


def _deeper(found: SafeSource, best: Recognised) -> Recognised:
    """The same judged by more of a log, where there is more; the program counts before what others write into it."""
    if len(found.head) < found.head_bytes:
        return best
    deep = _surest(DeepSource(found.path, found.name), _named(TEXT_LOGS))
    carried = best.is_one_of(CARRIED) and not deep.is_one_of(CARRIED) and deep.score >= SURE
    return replace(deep, source=found) if carried or deep.score > best.score else best


def _taken_out(found: SafeSource, unknown: bool, scratch: Path, check: Callable[[], None]) -> Recognised:
    """The lines of an export, where a collector of logs knows what they are. Of a file that is `unknown` otherwise, but
    dates each and says how severe or whose it is, they may be any log's, whatever its name."""
    nothing = Recognised(0.0, collector(ANY_LOG), found)
    out = _unused(scratch)
    try:
        sample = take_out(found, out, check, SAMPLE_BYTES)
        name = f"{found.name}.log" if unknown and sample.logged else found.name
        sure = _surest(DeepSource(out, name), _named((*TEXT_LOGS, ANY_LOG)))
        if sure.score < SURE:
            out.unlink()
            return nothing
        got = take_out(found, out, check)
    except InputError:  # more broken than whole: whoever reads it says so
        out.unlink(missing_ok=True)
        return nothing
    reader = Together(sure.collector) if got.goodput else sure.collector
    notes = tuple(f"{found.name}: {note}" for note in got.notes)
    return Recognised(sure.score, reader, LinesTakenOut(found.path, found.name, lines=out), notes)
