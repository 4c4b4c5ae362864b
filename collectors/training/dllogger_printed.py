"""What DLLogger prints of an entry, in the two forms that DeepLearningExamples give it:

    DLL 2020-09-15 14:29:13.47 - Epoch: 0 Iteration: 1  train.loss : 7.09  train.total_ips : 267 img/s
    DLL 2021-06-14 23:08:53.65 - epoch    1 | iter   1/48 | loss 40.97 | kl weight 0.01 | 5730.98 frames/s | took 24.5 s
In columns (speech: FastPitch, HiFi-GAN) a rate has no name but its unit, and `took`, once `elapsed`, is of the
iteration.
"""

import re
from dataclasses import dataclass
from typing import Any

LONGEST = 1 << 16  # characters of what is printed of an entry
_DATE = r"DLLL? \d{4}-\d\d-\d\d [\d:.]{8,15}"
SNIFF = _DATE + r" - (?:(?:Training )?Epoch: \d+ (?:Training )?Iteration: \d|epoch +\d+ \| iter +\d+/)"
_PRINTED = re.compile(
    rf"\b{_DATE}(?P<end>) - (?:(?P<parameter>PARAMETER) |(?P<summary>Summary: )"
    r"|(?:Training )?Epoch: (?P<epoch>\d{1,18}) (?:(?:Training )?Iteration: (?P<iteration>\d{1,18}) )?"
    r"(?:Validation Iteration: (?P<validation>\d{1,18}) )?"
    r"|(?P<columns>epoch +(?P<of>\d{1,18}) (?:\| iter +(?P<iter>\d{1,18})/(?P<iters>\d{1,18}) )?))",
    re.ASCII,
)
_METRIC = re.compile(r"(?<![^\s:])([^\s:]{1,200}) : (\S{1,100})(?: (?!\S{1,200} : )(\S{1,20}))?")
_VALUE = r"[-+]?(?:\d{1,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,3})?|nan|inf)"
_COLUMN = re.compile(
    rf"\| *(?:(?P<name>[^|\d\s][^|]{{0,100}}?) +)?(?:{_VALUE} -> )?(?P<value>{_VALUE})"
    r"(?: (?P<unit>[^|\s]{1,20}))? *(?=\||$)",
    re.ASCII,
)


@dataclass(frozen=True)
class Printed:
    """An entry: `step` as DLLogger has it, its numbers, and their units. `begin` to `dated`: where its time stands."""

    begin: int
    dated: int
    step: object
    data: dict[str, Any]
    units: dict[str, str]


def printed(line: str) -> Printed | None:
    found = _PRINTED.search(line)
    if found is None:
        return None
    told = _of_columns(line, found) if found["columns"] else _of_names(line, found)
    return Printed(found.start(), found.end("end"), *told)


def _of_names(line: str, found: re.Match[str]) -> tuple[object, dict[str, Any], dict[str, str]]:
    data: dict[str, Any] = {}
    units: dict[str, str] = {}
    for name, value, unit in _METRIC.findall(line, found.end(), found.end() + LONGEST):
        data[name] = _told(value)
        if unit:
            units[name] = unit
    place = [int(n) for n in (found["epoch"], found["iteration"], found["validation"]) if n is not None]
    return found["parameter"] or place, data, units


def _of_columns(line: str, found: re.Match[str]) -> tuple[object, dict[str, Any], dict[str, str]]:
    data: dict[str, Any] = {}
    units: dict[str, str] = {}
    for column in _COLUMN.finditer(line.rstrip(), found.end(), found.end() + LONGEST):
        name, unit = column["name"] or column["unit"], column["unit"]
        if name is None:
            continue
        name = "took" if name == "elapsed" else name
        data[name] = float(column["value"])
        if unit:
            units[name] = unit
    return [int(n) for n in (found["of"], found["iter"]) if n is not None], data, units


def _told(text: str) -> object:
    """A value as it is printed."""
    try:
        return float(text)
    except ValueError:
        return True if text == "True" else text
