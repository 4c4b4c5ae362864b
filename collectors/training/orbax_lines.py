"""What Orbax, with which JAX's programs save checkpoints, writes into their logs of saves and restores that have ended.

    Finished blocking save in 1.25 seconds. Continuing save @ gs://b/checkpoints/200.     since 0.11.33
    Finished blocking save. Time taken: 1.250000s. Continuing background save to ...      2025
    Finished saving checkpoint in 1.25 seconds to ...                                     of those that are not written
    Finished save in 1.25 seconds @ ...                                                   in the background
    Finished restoring checkpoint in 21.50 seconds from ..., Finished load in 21.50 seconds @ ...
    {'step': 200, 'event_type': 'save', ..., 'checkpoint_manager_blocking_duration_secs': 1.27}

The last is of the whole call, with its wait for the save before. What goes on in the background while steps are taken
(`blocking + background`, `async_save`) holds up nobody and is left out.
"""

import json
import re
from typing import NamedTuple

from collectors.reading.textlog import clean, digits, seconds_to_ns

_NUMBER = r"(\d{1,9}(?:\.\d{0,30})?(?:e-\d{1,3})?)(?![\de.])"
_ENDED = re.compile(
    r"Finished (?:(?P<blocking>blocking )(?P<part>save|load)|(?P<whole>save|load|(?:saving|restoring) checkpoint))"
    rf"(?: in {_NUMBER} seconds|\. Time taken: {_NUMBER}s)(?P<rest>.*)",
    re.ASCII,
)
_PATH = re.compile(r"(?:@|\bto|\bfrom|directory=) ?`?(?P<path>[^\s`]{1,4096})`?\s*$")
_STEP = re.compile(r"/(\d{1,18})(?:/[A-Za-z_]\w{0,79})?/?\Z", re.ASCII)
_CALL = re.compile(r"\{'step': (\d{1,18}|None), 'event_type': '(save|restore|emergency_restore)'(.*)", re.ASCII)
_CALL_TOOK = {
    "save": re.compile(rf"'checkpoint_manager_blocking_duration_secs': {_NUMBER}", re.ASCII),
    "restore": re.compile(rf"'checkpoint_manager_duration_secs': {_NUMBER}", re.ASCII),
}
_DIRECTORY = re.compile(r"'directory': '([^']{1,4096})'")
_SYNCHRONOUS = re.compile(r"'synchronous': (True|False)")
NEEDLES = ("Finished blocking ", "Finished sav", "Finished load ", "Finished restoring ", "'event_type': '")


class Checkpoint(NamedTuple):
    """A save or a restore that ended as its line was written. `kind`: of `lifecycle`; `dur_ns`: how long the training
    loop stood still for it; `step`: of the checkpoint, where it is told; `detail`: JSON with its directory, and whether
    a save was synchronous; `before`: how many characters stand before its text."""

    kind: str
    dur_ns: int
    step: int | None
    detail: str | None
    before: int


def checkpoint(line: str) -> Checkpoint | None:
    """What a line tells of a checkpoint; None where it tells of none, or not how long it took."""
    if match := _ENDED.search(line):
        saved = (match["part"] or match["whole"]).startswith("sav")
        path = found["path"].rstrip(".") if (found := _PATH.search(match["rest"])) else None
        at = _STEP.search(path) if path else None
        step = digits(at[1]) if at else None
        seconds = match[4] or match[5]
        synchronous = "[sync] " in line if match["blocking"] else True
        return _told(saved, seconds, step, path[: at.start()] if path and at else path, synchronous, match.start())
    if (match := _CALL.search(line)) and (took := _CALL_TOOK[match[2].removeprefix("emergency_")].search(match[3])):
        directory, said = _DIRECTORY.search(match[3]), _SYNCHRONOUS.search(match[3])
        synchronous = said[1] == "True" if said else None
        path = directory[1] if directory else None
        return _told(match[2] == "save", took[1], digits(match[1]), path, synchronous, match.start())
    return None


def _told(
    saved: bool, seconds: str, step: int | None, path: str | None, synchronous: bool | None, before: int
) -> Checkpoint | None:
    dur_ns = seconds_to_ns(float(seconds))
    if dur_ns is None:
        return None
    told: dict[str, object] = {"directory": clean(path)} if path else {}
    if saved and synchronous is not None:
        told["synchronous"] = synchronous
    detail = json.dumps(told) if told else None
    return Checkpoint("checkpoint_save" if saved else "checkpoint_restore", dur_ns, step, detail, before)
