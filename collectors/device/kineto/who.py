"""Whose trace it is: process, rank, groups of ranks, and the kind of its devices."""

import re
from pathlib import PurePath
from typing import Any

from catalog.chips import chip, shown_as
from collectors.device.xplane.planes import process_of_path
from errors import QuestionError

_NAMED = re.compile(
    r"^(?P<host>.+?)_(?P<pid>\d+)(?:\.\d+)?\.pt\.trace\.json$"
)  # as `tensorboard_trace_handler` names its files
_ENDINGS = re.compile(r"(\.\d{6,})?(\.pt)?(\.trace)?\.json$|\.sqlite3?$|\.db$|\.rpd$|_pqtdir$")
_RANK = re.compile(r"(?<!local)(?:^|[/_.-])rank[_-]?(\d{1,7})(?=[/_.\-\[]|$)", re.IGNORECASE)
_MOST_RANKS = 1 << 20
_MOST_SHOWN = 1 << 14  # ranks of a group that are named one by one
UNKNOWN = "?"


def number(value: Any) -> int | None:
    """A whole number that is no truth value, not below zero and not absurd."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_RANKS else None


class Who:
    """`rank`: of the process in its job, null where nothing tells it. `world`: processes of the job. `host`: what its
    rows are told apart by."""

    def __init__(self, name: str, beside: dict[str, Any], on_device: bool):
        info = beside.get("distributedInfo")
        self._info: dict[str, Any] = info if isinstance(info, dict) else {}
        self._machine = machine if isinstance(machine := beside.get("hostName"), str) else ""
        self.world = number(self._info.get("world_size"))
        file = PurePath(name).name.removesuffix(".gz")
        said = _RANK.findall(file)
        in_name = number(said[-1]) if said else process_of_path(name)
        told = number(self._info.get("rank"))
        # Processes without a device may all call themselves rank 0.
        doubtful = told == 0 and in_name is not None and not on_device and "backend" not in self._info
        self.rank = in_name if told is None or doubtful else told
        self.differs = (told, in_name) if told is not None and in_name not in (None, told) and not doubtful else None
        self.host = self._host(file)
        self._groups = self._configured()

    def _host(self, file: str) -> str:
        match = _NAMED.match(file)
        if match and self.rank is not None and not _RANK.search(file):
            return f"{match['host']}/{self.rank}"
        if self.rank is not None:
            return f"rank {self.rank}"
        if self._machine:
            return f"{self._machine}/{_ENDINGS.sub('', file)}"
        return match["host"] + "/" + match["pid"] if match else _ENDINGS.sub("", file) or file

    def _configured(self) -> dict[str, tuple[int, ...]]:
        """Ranks of each process group by name."""
        config = self._info.get("pg_config")
        found: dict[str, tuple[int, ...]] = {}
        for group in config if isinstance(config, list) else ():
            if isinstance(group, dict) and (ranks := ranks_of(group.get("ranks"))):
                found[str(group.get("pg_name"))] = ranks
        return found

    def group(self, ranks: str, name: str, size: int | None) -> str:
        """Ranks that take part in a collective, `?` for each that is not known.

        From what the kernel tells of them, else from the configuration of its group.
        """
        known = ranks_of(ranks) or self._groups.get(name)
        if not known and self.world and (size == self.world or (size is None and self._one_group)):
            known = tuple(range(self.world))
        if known and size in (None, len(known)) and len(known) <= _MOST_SHOWN:
            return ",".join(map(str, known))
        return ",".join([UNKNOWN] * size) if size and size <= _MOST_SHOWN else UNKNOWN

    @property
    def _one_group(self) -> bool:
        """Whether all collectives are of all ranks: a job of two, or one that made no further groups."""
        return self.world == 2 or number(self._info.get("pg_count")) == 1


def ranks_of(value: Any) -> tuple[int, ...] | None:
    """Ranks from a list or its text, such as `[0, 1, 2]`; None where it is cut short or none."""
    if isinstance(value, str):
        inner = value.strip()
        if not (inner.startswith("[") and inner.endswith("]")) or "..." in inner:
            return None
        value = [part.strip() for part in inner[1:-1].split(",") if part.strip()]
    if not isinstance(value, list):
        return None
    found = [number(v) for v in value]
    ranks = tuple(n for n in found if n is not None)
    return ranks if ranks and len(ranks) == len(found) else None


def properties(beside: dict[str, Any]) -> list[dict[str, Any]]:
    """What the trace tells of each device that it could see."""
    found = beside.get("deviceProperties")
    return [p for p in found if isinstance(p, dict)] if isinstance(found, list) else []


def of_device(devices: list[dict[str, Any]], device: int) -> dict[str, Any]:
    """The properties of a device: those with its number, else those that all share."""
    for one in devices:
        if one.get("id") == device:
            return one
    alike = {(str(d.get("name")), str(d.get("totalGlobalMem"))) for d in devices}
    return devices[0] if len(alike) == 1 else {}


def device_type(told: dict[str, Any], rocm: bool) -> tuple[str | None, str]:
    """(type of the device, how it is known): as the trace names it, where the catalogue or nothing else knows it; else
    by what it shows of itself."""
    name = told.get("name")
    name = name.strip()[:200] if isinstance(name, str) else ""
    try:
        chip(name)
        return name, "measured"
    except QuestionError:
        pass
    memory = told.get("totalGlobalMem")
    shown = shown_as(
        "AMD" if rocm else "Nvidia",
        told.get("computeMajor"),
        told.get("computeMinor"),
        told.get("numSms"),
        memory / 1e9 if isinstance(memory, int | float) else 0.0,
    )
    return (shown, "derived") if shown else (name or None, "measured")
