"""From a dump's bytes to rows."""

import json
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from collectors.base import Item, Lost, Source
from collectors.device.flight_recorder.entries import Entries, count, word
from collectors.device.flight_recorder.ranks import listed, paired, whose
from collectors.reading.plain_pickle import CutShort, Refused, loads
from collectors.reading.textlog import Buffer, Tally
from errors import InputError

LARGEST = 256 << 20  # bytes of a pickle: 20,000 operations with 30 frames each take a tenth
LARGEST_JSON = 64 << 20  # bytes of JSON, which takes twenty times as much memory while it is read
_PIECE = 1 << 20
MOST_ENTRIES = 200_000  # operations of one dump: recorders keep 2,000 unless told otherwise
MOST_GROUPS = 20_000  # of one rank
_RANKS_TEXT = 240_000_000  # characters of all lists of ranks of one dump
MOST_MEMBERS = 20_000_000  # ranks of all groups of one dump together
EXPECTED = "a dump of PyTorch's flight recorder: version, pg_config, pg_status, entries"
PROGRESS = (
    "rank",
    "group",
    "group_name",
    "description",
    "local_group",
    "last_enqueued",
    "last_started",
    "last_completed",
    "entries",
    "version",
    "fault",
    "source",
)
EMPTY = "the file is empty"
NAMELESS = "neither its name nor its groups tell which rank wrote it"


def items(source: Source) -> Iterator[Item]:
    """Rows of one dump. One that is empty or ends in the middle is a rank that tells nothing, with the reason.

    Raises InputError where it is no dump of the recorder, holds more than data, or nothing tells whose it is.
    """
    try:
        raw = _bytes(source)
        dump = _value(raw, source)
    except CutShort as e:
        yield from _silent(source, str(e))
        return
    if not raw:
        yield from _silent(source, EMPTY)
        return
    if not isinstance(dump, dict) or not {"entries", "pg_config", "pg_status"} & set(dump):
        raise InputError("no dump of a flight recorder", where=source.name, expected=EXPECTED)
    yield from _Dump(source, dump).items()


def _bytes(source: Source) -> bytes:
    try:
        with source.binary() as f:
            raw = b"".join(_pieces(f))
    except (EOFError, zlib.error) as e:
        raise CutShort("its gzip archive ends in the middle, or is damaged") from e
    most = LARGEST if raw[:1] == b"\x80" else LARGEST_JSON
    if len(raw) > most:
        raise InputError(
            f"longer than {most:,} bytes",
            where=source.name,
            expected=EXPECTED,
            advice="Write it with a smaller TORCH_FR_BUFFER_SIZE.",
        )
    return raw


def _pieces(f: BinaryIO) -> Iterator[bytes]:
    """The content to a little past the most that is read."""
    done = 0
    while done <= LARGEST and (piece := f.read(_PIECE)):
        done += len(piece)
        yield piece


def _value(raw: bytes, source: Source) -> Any:
    """The dump. Raises CutShort where it ends in the middle, InputError for what is no plain data."""
    try:
        return loads(raw) if raw[:1] == b"\x80" else _json(raw) if raw else None
    except Refused as e:
        raise InputError(
            f"not the plain data that a recorder writes: {e}",
            where=source.name,
            expected=EXPECTED,
            advice="Nothing in it was run. Take the file as the recorder wrote it.",
        ) from e
    except (ValueError, RecursionError) as e:
        if isinstance(e, CutShort):
            raise
        raise InputError(f"not JSON ({str(e)[:100]})", where=source.name, expected=EXPECTED) from e


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig", "replace"), parse_constant=lambda _: None)
    except json.JSONDecodeError as e:
        if not e.doc[e.pos :].strip() or "Unterminated" in e.msg:
            raise CutShort(f"it ends at byte {len(raw):,}, in the middle") from e
        raise


def _silent(source: Source, fault: str) -> Iterator[Item]:
    """A rank that left a file which tells nothing."""
    rank = whose(source.name, ())
    if rank is None:
        raise InputError(f"{fault}, and its name does not tell whose it is", where=source.name, expected=EXPECTED)
    rows = Buffer("group_progress", "rank", "fault", "source")
    rows.add(rank, fault, source.name)
    yield from rows.rest()
    yield Lost(f"the dump of rank {rank}", fault)


class _Dump:
    """One dump that was read: its groups, how far it came in each, and its entries."""

    def __init__(self, source: Source, dump: dict[str, Any]):
        self.source, self.tally = source, Tally()
        self.version = word(dump.get("version"), 20)
        self.groups = self._configured(dump.get("pg_config"))
        self.status = self._stated(dump.get("pg_status"))
        entries = dump.get("entries")
        self.listed = entries if isinstance(entries, list | tuple) else []
        if len(self.listed) > MOST_ENTRIES:
            raise InputError(
                f"more than {MOST_ENTRIES:,} operations",
                where=source.name,
                expected=EXPECTED,
                advice="Write it with a smaller TORCH_FR_BUFFER_SIZE.",
            )
        rank = whose(source.name, [ranks for _, _, ranks in self.groups.values() if ranks])
        if rank is None:
            raise InputError(
                NAMELESS,
                where=source.name,
                expected="a name that ends in the rank, such as nccl_trace_rank_12, and is a member of all its groups",
            )
        self.rank = rank

    def _configured(self, found: Any) -> dict[str, tuple[str, str | None, tuple[int, ...] | None]]:
        """{name: (name, description, ranks)} of the groups."""
        groups, members, text = {}, 0, 0
        for key, told in found.items() if isinstance(found, dict) else ():
            told = told if isinstance(told, dict) else {}
            text += len(told["ranks"]) if isinstance(told.get("ranks"), str) else 0
            ranks = listed(told.get("ranks")) if text <= _RANKS_TEXT else None
            members += len(ranks or ())
            if len(groups) >= MOST_GROUPS or members > MOST_MEMBERS or text > _RANKS_TEXT:
                raise InputError(
                    f"more than {MOST_GROUPS:,} groups, or {MOST_MEMBERS:,} ranks in them", where=self.source.name
                )
            name = word(key)
            if name is None or ranks is None:
                self.tally.add("process groups", "without a name, or without ranks that can be read")
            if name is not None:
                groups[name] = (name, word(told.get("desc")), ranks)
        return groups

    def _stated(self, found: Any) -> dict[int, tuple[int | None, int | None, int | None]]:
        """{the rank's own number of a group: last enqueued, started, completed}."""
        status = {}
        for key, told in found.items() if isinstance(found, dict) else ():
            number = count(key)
            if number is None or not isinstance(told, dict) or len(status) >= MOST_GROUPS:
                self.tally.add("progress of groups", "it cannot be read")
                continue
            enqueued, started, completed = (
                count(told.get(f"last_{what}_collective")) for what in ("enqueued", "started", "completed")
            )
            status[number] = enqueued, started, completed
        return status

    def items(self) -> Iterator[Item]:
        entries = Entries(self.source.name, self.rank, self.groups, self.tally)
        yield from entries.items(self.listed)
        yield from self._progress(entries)
        yield from self.tally.lost()

    def _progress(self, entries: Entries) -> Iterator[Item]:
        rows = Buffer("group_progress", *PROGRESS)
        pairs = paired(self.groups, self.status, entries.known)
        number_of = {name: number for number, name in pairs.items()}
        for name in dict.fromkeys((*self.groups, *entries.named)):
            _, description, ranks = self.groups.get(name, (name, entries.named.get(name), None))
            number = number_of.get(name)
            rows.add(*self._row(ranks, name, description, number, entries.counts.get(name, 0)))
            yield from rows.full()
        for number in sorted({*self.status} - {*number_of.values()}):
            rows.add(*self._row(None, None, None, number, None))
            yield from rows.full()
        if not (self.groups or entries.named or self.status):
            rows.add(*self._row(None, None, None, None, 0))
        yield from rows.rest()

    def _row(
        self,
        ranks: tuple[int, ...] | None,
        name: str | None,
        description: str | None,
        number: int | None,
        entries: int | None,
    ) -> tuple[object, ...]:
        status = self.status.get(number, (None, None, None)) if number is not None else (None, None, None)
        group = ",".join(map(str, ranks)) if ranks else None
        return self.rank, group, name, description, number, *status, entries, self.version, None, self.source.name
