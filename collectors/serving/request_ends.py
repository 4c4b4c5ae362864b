"""How a request ended, from the words and numbers that people write for it in tables of their own."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from collectors.reading.textlog import Tally, clean

T = TypeVar("T")
_WORDS = {  # of letters and digits alone
    "completed": re.compile(
        r"completed?|success(?:ful)?|succeeded|ok|done|finish(?:ed)?|pass(?:ed)?|true|yes|y|t|noerrors?"
        r"|stop(?:sequence)?|length|maxtokens|eos|endturn|toolcalls?|contentfilter"  # why an answer ended
    ),
    "aborted": re.compile(
        r"(?:client|user|peer|by)*(?:abort(?:ed)?|cancel(?:l?ed)?|disconnect(?:ed)?|interrupted)(?:by(?:client|user|peer))?"
        r"|clientclosedrequest"
    ),
    "failed": re.compile(
        r"fail(?:ed|ure)?|errored|rejected|refused|dropped|unfinished|incomplete|false|no|n|f"
        r"|(?!no|without)[a-z]*(?:errors?|exception|failure|timeout|timedout)(?:[1-5]\d\d)?"  # its kind, its code
        r"|ratelimit(?:ed)?|throttled|toomanyrequests|overloaded|(?:service)?unavailable"
    ),
}
_HTTP = re.compile(r"(?:http(?:/\d(?:\.\d)?)?[ :_-]*)?([1-5]\d\d)(?:[ :_-][a-z ':_-]*)?", re.IGNORECASE)
_NO_ERROR = re.compile(r"|none|null|nil|nan|na|false|no|ok|noerror|success|stop")
NAMED = 3  # words that are not known, of one piece of a file: more are told together
YES_OR_NO = ("ok", "success", "succeeded", "completed")  # columns whose 0 is a failure; a status of 0 may be either


def ends(
    told: np.ndarray, status: Sequence[Any] | None, column: str, errors: Sequence[Any] | None, tally: Tally
) -> list[str | None]:
    """completed, aborted, failed, or None where nothing tells, of each row.

    `told`: whether a latency was recorded. `status`: what the column of that name says; `errors`: what the column of
    errors says. A word that is not known decides nothing: a row with a latency was answered, another was not. An error
    that is told outweighs a latency, which may be of what came before it.
    """
    said = [None] * len(told) if status is None else of_each(status, lambda value: _ended(value, column))
    wrong = [False] * len(told) if errors is None else of_each(errors, _is_error)
    unknown: Counter[str] = Counter()
    found: list[str | None] = []
    for has_latency, end, bad in zip(told.tolist(), said, wrong, strict=True):
        if bad and end != "aborted":
            end = "failed"
        elif end not in ("completed", "aborted", "failed", None):
            unknown[end] += 1
            end = "completed" if has_latency else "failed"
        elif end is None:
            end = "completed" if has_latency else None
            if end is None:
                tally.add("requests", "they have no latency and no status: whether they were answered nobody says")
        found.append(end)
    for n, (word, count) in enumerate(unknown.most_common()):
        what = f"status {word!r}" if n < NAMED else "status, other words"
        tally.add(what, "what it means is not known: who has it was answered if it has a latency", count=count)
    return found


def of_each(values: Sequence[Any], judge: Callable[[Any], T]) -> list[T]:
    """What is judged of each value; once of those that are alike, since a million rows have few ends."""
    known: dict[tuple[type, Any], T] = {}
    found = []
    for value in values:
        if isinstance(value, list | dict):
            found.append(judge(value))
            continue
        key = type(value), value  # 1, 1.0 and True are alike, and do not say the same
        if key not in known:
            known[key] = judge(value)
        found.append(known[key])
    return found


def _ended(value: Any, column: str) -> str | None:
    """completed, aborted or failed; the word itself where it is none that is known; None where nothing is said."""
    if value is None or value == "" or isinstance(value, list | dict):
        return None
    text = clean(str(value).strip())[:60]
    word = _plain(text)
    for end, words in _WORDS.items():
        if words.fullmatch(word):
            return end
    number = _number(http[1] if (http := _HTTP.fullmatch(text)) else text)
    if number is None:
        return text or None
    if 200 <= number < 300 or number == 1:
        return "completed"
    if 300 <= number < 600 or (number == 0 and _plain(column) in YES_OR_NO):
        return "failed"
    return text


def _is_error(value: Any) -> bool:
    """Whether a column of errors tells of one."""
    if isinstance(value, list | dict):
        return bool(value)
    if value is None or isinstance(value, bool):
        return bool(value)
    text = str(value).strip()
    return not _NO_ERROR.fullmatch(_plain(text)) and _number(text) not in (0, 200)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _plain(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())
