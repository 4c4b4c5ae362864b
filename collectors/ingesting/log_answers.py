"""Answers of log services that are too long for one object, or were cut off: one entry after another.

Elasticsearch, Loki, CloudWatch, Datadog and Splunk hand out all entries within one object of JSON. One of a few
megabytes is read entry by entry, as it comes; where it ends in the middle, what came before that is told. What is
broken, or is no JSON between one answer and the next, is passed over.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

from collectors.base import Source
from collectors.reading import json_stream
from collectors.reading.json_text import JsonText
from collectors.reading.textlog import Tally

TEXT_KEYS = (
    "textPayload",
    "log",
    "message",
    "line",
    "msg",
    "MESSAGE",
    "_raw",
    "@message",
)  # what holds the line of an entry
_LISTS = {
    ("events",),
    ("hits", "hits"),
    ("data", "result"),
    ("data",),
    ("results",),
    ("items",),
}  # where the entries of an answer lie
_LISTED = re.compile(rb'"(?:events|hits|results?|data|items)"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,\[\]]*")  # answers, a line each or in an array
_ENTRY_END, _PAIR_END = re.compile(r"\}(?=\s*,\s*\{)"), re.compile(r"\](?=\s*,\s*\[)")  # with another behind it
_NEXT_ANSWER = re.compile(r"\n(?=\{)")


class _Text(JsonText):
    """An answer. `listed`: whether a list of entries began; `worded`: whether a line stood beside it, so that what
    lists is an entry itself."""

    listed = worded = False


def is_answer(source: Source) -> bool:
    """Whether a file begins with an object that lists entries, and that does not end within its first bytes."""
    head = source.head.lstrip()
    if not _LISTED.search(head) or json_stream.first(head) is not None:
        return False
    text = _Text(BytesIO(head).read)
    with contextlib.suppress(json_stream.Ended):
        if text.peek() == "{":
            next(_object(text, (), Tally()), None)
    return text.listed and not text.worded


def answered(read: Callable[[int], bytes], tally: Tally) -> Iterator[tuple[int, dict]]:
    """(byte offset behind it, entry) for each entry of the answers in a file, one after another. A line of Loki's is an
    entry with `labels`, `ts` and `line`."""
    text = _Text(read)
    while text.peek(_BETWEEN) == "{":
        try:
            yield from _object(text, (), tally)
        except json_stream.Ended:
            if not text.pass_by(_NEXT_ANSWER):
                tally.add("the last entry", "the file ends in the middle of it, or it is no JSON", text.told)
                return
            tally.add("objects", "they are not valid JSON", text.told)
        if text.peek(_BETWEEN) not in ("{", ""):
            tally.add("pieces of text", "they are no JSON objects", text.offset)
            text.pass_by(_NEXT_ANSWER)


def _object(text: _Text, path: tuple[str, ...], tally: Tally) -> Iterator[tuple[int, dict]]:
    for key in text.members():
        here = (*path, key)
        if here in _LISTS and text.peek() == "[":
            text.listed = True
            for _ in text.places():
                yield from _stream(text, tally) if here == ("data", "result") else _entry(text, tally)
        elif any(one[: len(here)] == here for one in _LISTS) and text.peek() == "{":
            yield from _object(text, here, tally)
        else:
            found = text.value()
            text.worded |= not path and key in TEXT_KEYS and isinstance(found, str)


def _entry(text: _Text, tally: Tally) -> Iterator[tuple[int, dict]]:
    found = entry_within(_good(text, _ENTRY_END if text.peek() == "{" else _PAIR_END, tally))
    if found is not None:
        yield text.offset, found


def entry_within(part: Any) -> dict | None:
    """The entry that a part of a list of entries is, or wraps: Elasticsearch puts it into `_source`, Datadog into
    `attributes`, and a query of CloudWatch makes a list of its fields with their values. None where it is none."""
    if isinstance(part, list):
        fields = (one for one in part if isinstance(one, dict) and isinstance(one.get("field"), str))
        return {one["field"]: one.get("value") for one in fields} or None
    if not isinstance(part, dict):
        return None
    inner = part.get("_source") or (part.get("attributes") if part.get("type") == "log" else None)
    return inner if isinstance(inner, dict) else part


def _good(text: _Text, end: re.Pattern[str], tally: Tally) -> Any:
    """The next value of a list; None of one that is broken, whose end is passed where another stands behind it."""
    try:
        return text.value()
    except json_stream.Ended:
        if not text.pass_by(end):
            raise
        tally.add("objects", "they are not valid JSON", text.told)
        return None


def _stream(text: _Text, tally: Tally) -> Iterator[tuple[int, dict]]:
    """The lines of one of Loki's streams, once its labels are known."""
    labels: Any = None
    waiting: list[tuple[int, list]] = []
    if text.peek() != "{":
        _good(text, _ENTRY_END, tally)
        return
    for key in text.members():
        if key == "stream":
            labels = text.value()
        elif key == "values" and text.peek() == "[":
            for _ in text.places():
                pair = _good(text, _PAIR_END, tally)
                if not isinstance(pair, list) or len(pair) < 2:
                    continue
                if isinstance(labels, dict):
                    yield text.offset, {"labels": labels, "ts": pair[0], "line": pair[1]}
                else:
                    waiting.append((text.offset, pair))
        else:
            text.value()
    if isinstance(labels, dict):
        yield from ((at, {"labels": labels, "ts": pair[0], "line": pair[1]}) for at, pair in waiting)
