"""What `tpu-info` prints, once or streaming, and memory statistics of JAX devices as JSON or as Python prints them.

    memory    bytes_in_use and bytes_limit of each chip ("18.45 GiB / 31.25 GiB": no finer than 0.01 GiB); from
              memory_stats also peak_bytes_in_use and bytes_reserved, to the byte
    scalars   every other number of a table: `Duty cycle{Chip="0"}`, `TPU Host Compute Latency P50{Buffer Size="8MB+"}`
    facts     chip (column Type), chips_of_host
A chip is one of the host that the statistics name, else of what the file is called, but for when it was written: each
host counts its own from 0.
Times are those of "Last update: ..." or of a line with a time alone (`date`) above a table; there may be none.
"""

import re
from collections.abc import Iterator
from typing import Any

from collectors.base import Fact, Item, Source
from collectors.reading.exposition import MOMENT, time_ns
from collectors.reading.json_stream import objects
from collectors.reading.textlog import DATED, Buffer, Tally, clean, lines, moment_ns, whole
from errors import InputError

NAME = "tpu_info"
TITLE = "tpu-info table"
HELP = "Tables printed by tpu-info, and device.memory_stats() of JAX: memory and utilisation of devices."

_TITLES = (
    b"TPU Chips",
    b"TPU Runtime Utilization",
    b"TPU HBM Usage",
    b"TPU Duty Cycle",
    b"TensorCore Utilization",
    b"TPU Buffer Transfer Latency",
)
_FIRST_ROW = re.compile(rb"^[^\S\n]*+(?:\||\xe2\x94[\x82\x83])", re.MULTILINE)
_STATS = re.compile(rb"""["']bytes_in_use["']\s*:\s*\d""")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ROW = re.compile(r"^\s*[|│┃]")
_RULE = re.compile(r"^[\s|│┃+\-─━═:┌┐└┘├┤┬┴┼┏┓┗┛┡┩┢┪╇╈╋┳┻╭╮╰╯╔╗╚╝]*$")
_USAGE = re.compile(r"([\d.]+)\s*([KMGT]i?B)\s*/\s*([\d.]+)\s*([KMGT]i?B)")
_CELL = re.compile(r"(-?\d+(?:\.\d+)?)\s*(%|[A-Za-z][A-Za-z/]*)?")
_BYTES = {f"{p}{i}B": (1024 if i else 1000) ** n for n, p in enumerate("KMGT", 1) for i in ("i", "")}
_CHIP = re.compile(r"TPU (\S+)")
_PAIR = re.compile(r"""["'](\w{1,60})["']\s*:\s*(-?\d{1,19})(?![\d.])""")
_DEVICE = re.compile(r"(?:[TGC]PU_|Device\(id=|[Dd]evice[ _:#=]*)(\d{1,5})|^\s*+(\d{1,5})\s*+(?:[:,]\s*+)?\{")
_KINDS = ("bytes_in_use", "bytes_limit", "peak_bytes_in_use", "bytes_reserved")
_DEVICE_KEYS, _TIME_KEYS = ("device", "device_id", "id", "local_device", "index"), ("ts_ns", "time", "timestamp", "ts")
_HOST_KEYS = ("host", "hostname")
_ENDINGS = re.compile(r"(\.(txt|log|out|json|jsonl)(\.\d{1,4})?)*(\.gz)?$", re.IGNORECASE)  # rotated ones too
_DATED = re.compile(
    r"[-_.]?(?<!\d)(\d{4}([-_.]?)\d\d\2\d\d([-_.T]?\d\d[-_.:]?\d\d([-_.:]?\d\d)?Z?)?|\d{10})(?!\d)", re.ASCII
)
_IDS = ("Device", "Chip", "Chip ID", "Core ID", "Device ID")
MAX_NAMES = 5_000
MAX_DEPTH = 6


def sniff(source: Source) -> float:
    head = source.head
    if b"\0" in head:
        return 0.0
    if any(title in head for title in _TITLES) and _FIRST_ROW.search(head):
        return 0.9
    return 0.75 if _STATS.search(head) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Memory, scalars, facts. Raises InputError where no table and no statistics are in it."""
    tally = Tally()
    told = _Told(source)
    if source.head.lstrip()[:1] in (b"{", b"[") and b'"bytes_in_use"' in source.head:
        for _, entry in objects(source, tally):
            told.walk(entry, None, None, 0)
            yield from told.full()
    else:
        for offset, line, _ in lines(source):
            told.line(_ANSI.sub("", line), offset, tally)
            yield from told.full()
    if not told.rows:
        raise InputError(
            "no table of tpu-info and no memory statistics in it",
            where=source.name,
            expected="the output of `tpu-info`, or `device.memory_stats()` of each device, a line each",
        )
    yield from told.rest()
    yield from tally.lost()


class _Told:
    def __init__(self, source: Source):
        self.source = clean(source.name)
        self._host = clean(_DATED.sub("", _ENDINGS.sub("", source.name))) or self.source
        self.memory = Buffer("memory", "host", "device", "ts_ns", "kind", "bytes")
        self.scalars = Buffer("scalars", "ts_ns", "name", "value", "unit", "source")
        self.rows = 0
        self._ts_ns: int | None = None
        self._title, self._head = "", []
        self._chips: set[str] = set()
        self._chip: str | None = None
        self._names: set[str] = set()

    def full(self) -> Iterator[Item]:
        yield from self.memory.full()
        yield from self.scalars.full()

    def rest(self) -> Iterator[Item]:
        yield from self.memory.rest()
        yield from self.scalars.rest()
        if self._chip:
            yield Fact("chip", self._chip)
        if self._chips:
            yield Fact("chips_of_host", len(self._chips))

    def line(self, line: str, offset: int, tally: Tally) -> None:
        """One line of text: of a table, a title, a time, or a printed dictionary."""
        if _ROW.match(line):
            cells = [c.strip() for c in re.split(r"[|│┃]", line.strip())[1:-1]]
            if not _RULE.match(line):
                self._cells(cells, offset, tally)
            return
        text = line.strip()
        if not text or _RULE.match(text):
            return
        self._head = []
        if "bytes_in_use" in text:
            self._printed(text)
        elif MOMENT.fullmatch(text):
            self._ts_ns = time_ns(text)
        elif text.startswith("Last update") and (match := DATED.search(text)):
            self._ts_ns = moment_ns(match)
        else:
            self._title = clean(text)[:100]

    def _cells(self, cells: list[str], offset: int, tally: Tally) -> None:
        if not self._head:
            self._head = cells
            return
        if len(cells) != len(self._head):
            tally.add("rows of tables", "more or fewer cells than the head", offset)
            return
        row = dict(zip(self._head, cells, strict=True))
        if "Type" in row and "Chip" in row:
            self._chips.add(row["Chip"])
            if match := _CHIP.match(row["Type"]):
                self._chip = match[1]
            self.rows += 1
            return
        if "PID" in row:
            return
        key = self._head[0]
        which = row.pop(key) if key in _IDS or "ize" in key else None
        for column, cell in row.items():
            self._cell(key, which, column, cell)

    def _cell(self, key: str, which: str | None, column: str, cell: str) -> None:
        if match := _USAGE.fullmatch(cell):
            number = re.search(r"(\d{1,5})$", which or "")
            for kind, value, unit in (("bytes_in_use", match[1], match[2]), ("bytes_limit", match[3], match[4])):
                self._memory(int(number[1]) if number else None, self._ts_ns, kind, _bytes(value, unit))
        elif match := _CELL.fullmatch(cell):
            title = f"{self._title} {column}" if re.fullmatch(r"P\d+", column) else column
            self._scalar(f'{title}{{{key}="{which}"}}' if which else title, float(match[1]), match[2])

    def _printed(self, text: str) -> None:
        """A dictionary as Python or JSON prints it, with the device before it or among its keys."""
        stats = {key: int(value) for key, value in _PAIR.findall(text)}
        match = _DEVICE.search(text)
        device = next((stats[k] for k in _DEVICE_KEYS if k in stats), None)
        if device is None and match:
            device = int(match[1] or match[2])
        self._stats(stats, device, self._ts_ns)

    def walk(self, entry: Any, device: int | None, ts_ns: int | None, depth: int, host: str | None = None) -> None:
        """Statistics anywhere in a JSON object; device, host and time hold for what lies below."""
        if depth > MAX_DEPTH:
            return
        if isinstance(entry, list):
            for n, part in enumerate(entry):
                self.walk(part, n if device is None else device, ts_ns, depth + 1, host)
        if not isinstance(entry, dict):
            return
        for key in _DEVICE_KEYS:
            if (number := whole(entry.get(key))) is not None:
                device = number
                break
        ts_ns = next((t for key in _TIME_KEYS if (t := _moment(entry.get(key))) is not None), ts_ns)
        said = (entry.get(key) for key in _HOST_KEYS)
        host = next((clean(name)[:200] for name in said if isinstance(name, str) and name.strip()), host)
        if whole(entry.get("bytes_in_use")) is not None:
            self._stats({k: n for k, v in entry.items() if (n := whole(v)) is not None}, device, ts_ns, host)
        for key, part in entry.items():
            named = re.fullmatch(r"(?:\D*[_:])?(\d{1,5})", str(key)) if isinstance(part, dict) else None
            self.walk(part, int(named[1]) if named else device, ts_ns, depth + 1, host)

    def _stats(self, stats: dict[str, int], device: int | None, ts_ns: int | None, host: str | None = None) -> None:
        for kind in _KINDS:
            if kind in stats:
                self._memory(device, ts_ns, kind, stats[kind], host)
        for key, value in stats.items():
            if key not in (*_KINDS, *_DEVICE_KEYS, *_TIME_KEYS):
                self._scalar(
                    clean(key) if device is None else f'{clean(key)}{{device="{device}"}}', float(value), None, ts_ns
                )

    def _memory(
        self, device: int | None, ts_ns: int | None, kind: str, value: int | None, host: str | None = None
    ) -> None:
        if value is not None and 0 <= value < 1 << 62 and (device is None or 0 <= device < 1 << 31):
            self.memory.add(host or self._host, device, ts_ns, kind, value)
            self.rows += 1

    def _scalar(self, name: str, value: float, unit: str | None, ts_ns: int | None = None) -> None:
        if name in self._names or len(self._names) < MAX_NAMES:
            self._names.add(name)
            self.scalars.add(self._ts_ns if ts_ns is None else ts_ns, clean(name)[:200], value, unit, self.source)
            self.rows += 1


def _bytes(value: str, unit: str) -> int | None:
    try:
        return round(float(value) * _BYTES[unit])
    except (ValueError, OverflowError):
        return None


def _moment(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return time_ns(value if isinstance(value, str) else repr(value))
