"""From the records of an event file to what a run is told: see the package."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from collectors.base import Item, Lost, Source
from collectors.reading.as_far import AsFar
from collectors.reading.textlog import Tally
from collectors.training.tensorboard import codes
from collectors.training.tensorboard.arguments import MOST_BYTES, Texts
from collectors.training.tensorboard.records import Look, blocks, times_ns
from collectors.training.tracked import Tracked
from errors import InputError
from errors import format as fmt

EXPECTED = "records of events, as SummaryWriter writes them to events.out.tfevents.*"
NO_NUMBER = "no number of a step"
PASSED_OVER = (  # what is counted, one of it, and why it is passed over
    (codes.HISTOGRAMS, "histogram", NO_NUMBER),
    (codes.IMAGES, "image", NO_NUMBER),
    (codes.SOUNDS, "sound", NO_NUMBER),
    (codes.GRAPHS, "graph", NO_NUMBER),
    (codes.SEVERAL, "tensor", "they hold several numbers, as histograms and curves do: none is one of a step"),
    (codes.NO_NUMBER, "value", "they hold no number"),
    (codes.MALFORMED, "record", "they hold no event, though their checksums are right"),
)
_OF_PROCESS = re.compile(r"(?:rank|replica|worker|process|node|host)[_-]?\d{1,6}", re.ASCII)


class Reader:
    """Reads one file, for the collector `name`."""

    def __init__(self, source: Source, name: str):
        self._source, self._tally = source, Tally()
        self._tracked = Tracked(source, name, self._tally, host_of(source.name))
        self._texts = Texts(self._tally)
        self._look = Look()
        self._numbers = self._untimed = 0

    def items(self) -> Iterator[Item]:
        """Scalars, steps, facts and what was passed over. Raises InputError where there is neither number nor fact."""
        with AsFar(self._source.binary(), (EOFError,)) as stream:
            for block in blocks(stream, self._look):
                self._block(block)
                yield from self._tracked.full()
            why = stream.why
        facts = list(self._texts.facts())
        if not self._numbers and not facts:
            raise InputError(self._nothing(), where=self._source.name, expected=EXPECTED)
        yield from self._tracked.rest()
        yield from facts
        yield from self._tracked.facts()
        yield from self._lost(why)

    def _block(self, block: bytearray) -> None:
        for name, text in self._look.texts(block, MOST_BYTES):
            self._texts.add(name, text)
        if (size := self._texts.size_of_job()) is not None:
            self._tracked.trains(*size)
        if begun := int(times_ns(self._look.counted[[codes.BEGUN]])[0]):
            self._tracked.begun(begun)  # programs open their log right before they train
        if (values := self._look.values()) is not None:
            self._numbers += len(values.steps)
            self._untimed += int((values.ts_ns == 0).sum())
            self._tracked.extend(values.names, values.steps, values.ts_ns, values.numbers)

    def _lost(self, why: str) -> Iterator[Lost]:
        """What was not read. `why`: what broke the file off, empty where nothing did."""
        tally, look = self._tally, self._look
        for counter, what, reason in PASSED_OVER:
            if count := look.count(counter):
                tally.add(f"{what}s", reason, count=count)
        if count := self._texts.count:
            tally.add("texts", "no number of a step; facts are made of what the job ran with", count=count)
        if look.too_long:
            tally.add("records", f"longer than {codes.MOST_RECORD >> 20} MiB, as no number is", count=look.too_long)
        if self._untimed:
            tally.add("values", "they name no time: when they were logged is not known", count=self._untimed)
        yield from tally.lost()
        if places := look.count(codes.DAMAGED):
            what = f"{fmt.count(look.count(codes.DAMAGED_BYTES), 'byte')} in {fmt.count(places, 'place')}"
            reason = "checksums are wrong there; it is read on from the next record that is whole"
            yield Lost(what, reason, look.count(codes.FIRST_DAMAGED))
        if why or look.count(codes.CUT):
            yield Lost("the last record", f"it was written in part{f' ({why})' if why else ''}")

    def _nothing(self) -> str:
        """Why the file tells nothing, in words."""
        look = self._look
        records = look.count(codes.RECORDS)
        if not records:
            damaged = look.count(codes.DAMAGED) or look.count(codes.CUT)
            return "no record in it is whole" if damaged else "it is empty: no record in it"
        there = [fmt.count(n, what) for counter, what, _ in PASSED_OVER if (n := look.count(counter))]
        if self._texts.count:
            there.append(fmt.count(self._texts.count, "text"))
        if there:
            return f"no number in it, in {fmt.count(records, 'record')}: {', '.join(there)}"
        return "it is empty: the program that opened it logged nothing"


def host_of(name: str) -> str | None:
    """The rank or host whose file it is, where a folder is called after one; else it is of the job as a whole."""
    found = [part for part in PurePath(name).parent.parts if _OF_PROCESS.fullmatch(part)]
    return found[-1] if found else None
