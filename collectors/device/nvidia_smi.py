"""What `nvidia-smi` writes of GPUs over time: `--query-gpu=... --format=csv` with its head, and `dmon`.

    timestamp, index, name, power.draw [W], clocks.sm [MHz], clocks_event_reasons.hw_thermal_slowdown
    2026/07/31 00:00:05.000, 0, NVIDIA L4, 71.20 W, 1350 MHz, Not Active

    scalars   under the names that DCGM's samples have here: `GPU 0 power` in W, `SM clock` in MHz, `temperature` in °C,
              `slowed down by heat (hardware)` in %: 100 where it is Active; any other number under the field's own name
    memory    bytes_in_use = memory.used MiB * 2^20, bytes_limit = memory.total
    facts     chip, where all GPUs are of one model
A GPU without an index is numbered by its uuid or bus, in the order in which they come; without these by its place among
rows of one time. Times are as they stand, of no zone; `dmon` tells them with `-o DT` alone. `[N/A]` is not known.
"""

import re
from collections.abc import Iterator, Mapping

from collectors.base import Fact, Item, Source
from collectors.device.dcgm_events import SLOWED
from collectors.reading.textlog import DATED, Buffer, Tally, clean, fits, lines, moment_ns
from errors import InputError

NAME = "nvidia_smi"
TITLE = "nvidia-smi log"
HELP = "What nvidia-smi writes over time (--query-gpu=... --format=csv, dmon): power, clocks, heat, memory of GPUs."

MIB = 1 << 20
MOST_ROWS, MOST_GPUS, MOST_COLUMNS, MAX_NAME = 10_000_000, 1_024, 400, 100
_NAMED: Mapping[str, tuple[str, str | None]] = {
    "power.draw": ("power", "W"),
    "power.draw.average": ("power", "W"),
    "power.draw.instant": ("power of the instant", "W"),
    "power.limit": ("power limit", "W"),
    "enforced.power.limit": ("power limit in force", "W"),
    "temperature.gpu": ("temperature", "°C"),
    "temperature.memory": ("memory temperature", "°C"),
    "clocks.sm": ("SM clock", "MHz"),
    "clocks.current.sm": ("SM clock", "MHz"),
    "clocks.mem": ("memory clock", "MHz"),
    "clocks.current.memory": ("memory clock", "MHz"),
    "utilization.gpu": ("time with any kernel running", "%"),
    "utilization.memory": ("time with any memory traffic", "%"),
}
_OF_DMON: Mapping[str, tuple[str, str | None]] = {  # words that any table may have
    "pwr": ("power", "W"),
    "gtemp": ("temperature", "°C"),
    "mtemp": ("memory temperature", "°C"),
    "sm": ("time with any kernel running", "%"),
    "mem": ("time with any memory traffic", "%"),
    "mclk": ("memory clock", "MHz"),
    "pclk": ("SM clock", "MHz"),
}
_REASON = re.compile(r"clocks_(?:throttle|event)_reasons\.(\w{1,40})", re.ASCII)
_REASONS = {
    "sw_power_cap": "the power limit",
    "sw_thermal_slowdown": "heat (software)",
    "hw_thermal_slowdown": "heat (hardware)",
    "hw_power_brake_slowdown": "the power brake",
    "sync_boost": "sync boost",
}
_MEMORY = {"memory.used": "bytes_in_use", "memory.total": "bytes_limit"}
_KNOWN = {*_NAMED, *_MEMORY, "timestamp", "index", "name", "gpu_name", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id"}
_UNIT = re.compile(r" ?\[([^\]]{1,20})\]$")
_VALUE = re.compile(r"(-?\d{1,18}(?:\.\d{1,18})?)(?: ?([%A-Za-z/°]{1,10}))?", re.ASCII)
_DMON = re.compile(r"#\s*(?:Date[\s,]+Time[\s,]+|Time[\s,]+)?gpu[\s,]+(?:\w+[\s,]+)*(?:pwr|sm|fb|pclk)\b")
_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)", re.ASCII)
_SNIFF = re.compile(rb"^[^\S\n]*(?:timestamp|index|name|uuid|gpu_\w+|pci\.bus_id|[a-z_.]+)(?: \[[^\]\n]{1,20}\])?, ")
_BLANKS = ("", "-", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU is lost]", "[Insufficient Permissions]")
ZONELESS = "they name no time zone and were read as UTC"
EXPECTED = "a table with its head, such as `timestamp, index, power.draw [W]`, or the output of `nvidia-smi dmon -o DT`"


def sniff(source: Source) -> float:
    head = source.head.lstrip(b"\xef\xbb\xbf \t\r\n")[: 1 << 14]
    if b"\0" in head:
        return 0.0
    first = head.partition(b"\n")[0].decode("utf-8", "replace").strip()
    if first.startswith("#"):
        return 0.9 if _DMON.match(first) else 0.0
    return 0.9 if _SNIFF.match(head) and _fields(first) else 0.0


def read(source: Source) -> Iterator[Item]:
    """Scalars, memory, facts. Raises InputError where no row tells a number of a GPU."""
    log = _Log(source)
    for offset, line, whole in lines(source):
        log.line(offset, line.strip("\ufeff \t\r"), whole)
        yield from log.full()
    if not log.rows:
        raise InputError("no number of a GPU in it", where=source.name, expected=EXPECTED)
    yield from log.rest()
    yield from log.tally.lost()


def _fields(line: str) -> list[str]:
    """The fields of a head, without their units; empty for a line that is none."""
    if "," not in line or len(line) > 1 << 14:
        return []
    names = [_UNIT.sub("", part.strip()) for part in line.split(",")]
    known = [name for name in names if name in _KNOWN or _REASON.fullmatch(name)]
    told = [name for name in known if name in _NAMED or name in _MEMORY or _REASON.fullmatch(name)]
    return names if len(known) >= 2 and told and len(names) <= MOST_COLUMNS else []


class _Log:
    def __init__(self, source: Source):
        self.source, self.tally = clean(source.name), Tally()
        self.scalars = Buffer("scalars", "ts_ns", "name", "value", "unit", "source")
        self.memory = Buffer("memory", "host", "device", "ts_ns", "kind", "bytes", "name")
        self.rows = 0
        self._fields: list[str] = []
        self._twice: set[str] = set()  # fields that tell what another one before them does
        self._dmon = False
        self._gpus: dict[str, int] = {}
        self._models: set[str] = set()
        self._at: tuple[str, int] = ("", 0)  # the time of the last row, and how many had it

    def full(self) -> Iterator[Item]:
        yield from self.scalars.full()
        yield from self.memory.full()

    def rest(self) -> Iterator[Item]:
        yield from self.scalars.rest()
        yield from self.memory.rest()
        if len(self._models) == 1:
            yield Fact("chip", next(iter(self._models)))
        elif self._models:
            self.tally.add("the chip", "GPUs of several models are told of: which the job held is not known")

    def line(self, offset: int, line: str, whole: bool) -> None:
        if not line:
            return
        if line.startswith("#"):
            if _DMON.match(line):
                self._dmon, self._twice = True, set()
                self._fields = [name.lower() for name in _parts(line.lstrip("# "))]
        elif fields := [] if self._dmon else _fields(line):
            names = [_NAMED.get(field, (field,))[0] for field in fields]
            first = {name: field for name, field in reversed([*zip(names, fields, strict=True)])}
            self._fields, self._twice = fields, {*fields} - {*first.values()}
        elif self._fields:
            cells = _parts(line) if self._dmon else [part.strip() for part in line.split(",")]
            if len(cells) != len(self._fields) or not whole:
                self.tally.add("rows", "they have more or fewer fields than the head, or are cut off", offset)
            elif self.rows < MOST_ROWS:
                self._row(dict(zip(self._fields, cells, strict=True)), offset)
            else:
                self.tally.add("rows", f"more than {MOST_ROWS:,}", offset)
        else:
            self.tally.add("lines", "no head stands before them", offset)

    def _row(self, row: dict[str, str], offset: int) -> None:
        at = _time_ns(row)
        if at is not None:
            self.tally.add("times", ZONELESS, offset)
        device = self._device(row)
        if device is None:
            self.tally.add("rows", f"of more than {MOST_GPUS:,} GPUs, or of one whose number is none", offset)
            return
        if model := clean(row.get("name") or row.get("gpu_name") or "")[:MAX_NAME]:
            self._models.add(model)
        for field, text in row.items():
            if text not in _BLANKS and field not in self._twice:
                self._cell(at, device, field, text)

    def _cell(self, at: int | None, device: int, field: str, text: str) -> None:
        if reason := _REASON.fullmatch(field):
            self._reason(at, device, reason[1], text)
            return
        found = _VALUE.fullmatch(text)
        if found is None or field in ("index", "gpu", "timestamp", "date", "time", "count"):
            return
        value = float(found[1])
        if kind := _MEMORY.get(field):
            if value >= 0 and fits(size := round(value * MIB)):
                self.rows += 1
                self.memory.add(None, device, at, kind, size, None)
            return
        name, unit = (_OF_DMON if self._dmon else _NAMED).get(field, (clean(field)[:MAX_NAME], found[2]))
        self._scalar(at, device, name, value, unit)

    def _reason(self, at: int | None, device: int, which: str, text: str) -> None:
        if which == "active" and text.startswith("0x"):
            try:
                bits = int(text, 16)
            except ValueError:
                return
            for bit, by, _ in SLOWED:
                self._scalar(at, device, f"slowed down by {by}", 100.0 * bool(bits & bit), "%")
        elif (by := _REASONS.get(which)) and text in ("Active", "Not Active"):
            self._scalar(at, device, f"slowed down by {by}", 100.0 * (text == "Active"), "%")

    def _scalar(self, at: int | None, device: int, name: str, value: float, unit: str | None) -> None:
        self.rows += 1
        self.scalars.add(at, f"GPU {device} {name}", value, unit, self.source)

    def _device(self, row: dict[str, str]) -> int | None:
        told = row.get("index", row.get("gpu"))
        if told is not None:
            return int(told) if told.isascii() and told.isdigit() and len(told) < 6 else None
        who = next((row[k] for k in ("uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id") if row.get(k)), None)
        if who is None:
            time = row.get("timestamp", "")
            self._at = time, self._at[1] + 1 if time and time == self._at[0] else 0
            return self._at[1] if self._at[1] < MOST_GPUS else None
        if who not in self._gpus and len(self._gpus) >= MOST_GPUS:
            return None
        return self._gpus.setdefault(who, len(self._gpus))


def _parts(line: str) -> list[str]:
    return [part.strip() for part in line.split(",")] if "," in line else line.split()


def _time_ns(row: dict[str, str]) -> int | None:
    text = row.get("timestamp", "")
    if not text and (date := _DATE.fullmatch(row.get("date", ""))):
        text = f"{date[1]}-{date[2]}-{date[3]} {row.get('time', '')}"
    match = DATED.match(text.replace("/", "-"))
    return moment_ns(match) if match else None
