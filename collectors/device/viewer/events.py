"""The events of a trace, one after the other, out of a stream of JSON of any length."""

import codecs
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from collectors.reading.json_stream import Vain
from collectors.reading.textlog import Tally

_PIECE = 1 << 20
_MAX_OBJECT = 1 << 21  # characters of an event; one longer is damage
_MOST_DAMAGED = 1_000
_BETWEEN = re.compile(r"[\s,]*")
_BEGIN = re.compile(r'"traceEvents"\s*:\s*\[')
_NEXT = re.compile(r'\{\s*"(?:ph|pid|tid|name|ts|args|cat)"')


class _Text:
    """A window over a stream of text."""

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.text, self.at, self.ended = "", 0, False
        self.passed, self.vain, self.given_up = 0, Vain(), False  # characters before `text`, and what came to nothing
        self.broken: str | None = None

    def more(self) -> bool:
        """Takes in a further piece; False where there is none."""
        if self.ended:
            return False
        wanted, raw = max(_PIECE, len(self.text) - self.at), bytearray()  # as much again of an event that is long
        try:
            while len(raw) < wanted and (piece := self._stream.read1(wanted - len(raw))):  # type: ignore[attr-defined]
                raw += piece  # bit by bit, which keeps what precedes a fault
        except (EOFError, OSError, zlib.error) as error:
            self.broken = str(error)
        self.ended = not raw
        self.passed += self.at
        self.text = self.text[self.at :] + self._decoder.decode(raw, final=self.ended)
        self.at = 0
        return not self.ended


def trace_events(stream: BinaryIO, tally: Tally) -> Iterator[dict[str, Any]]:
    """Every event that is an object. What is damaged is counted; the rest behind an end in the middle is named."""
    text = _Text(stream)
    if not _begin(text):
        return
    decoder, damaged = json.JSONDecoder(), 0
    while True:
        event, done = _event(text, decoder)
        if done:
            return
        if isinstance(event, dict):
            yield event
            continue
        damaged += 1
        if text.given_up or not _skip(text) or damaged > _MOST_DAMAGED:
            tally.add("the rest of the trace", text.broken or "it ends in the middle, or is no JSON")
            return
        tally.add("events", "they are no JSON")


def _begin(text: _Text) -> bool:
    """Goes to the list of events."""
    while text.more():
        if found := _BEGIN.search(text.text):
            text.at = found.end()
            return True
        text.at = max(0, len(text.text) - 64)
    return False


def _event(text: _Text, decoder: json.JSONDecoder) -> tuple[Any, bool]:
    """(the next value or None where it is damaged, whether the list ended)."""
    while True:
        text.at = _BETWEEN.match(text.text, text.at).end()  # type: ignore[union-attr]  # matches always
        if text.at < len(text.text) and text.text[text.at] == "]":
            return None, True
        if text.at < len(text.text):
            try:
                value, text.at = decoder.raw_decode(text.text, text.at)
            except (ValueError, RecursionError) as e:
                text.given_up |= text.vain.too_much(e, text.text, text.at, text.passed + text.at)
                if text.given_up or len(text.text) - text.at > _MAX_OBJECT or not text.more():
                    return None, False
                continue
            return value if isinstance(value, dict) else {}, False
        if not text.more():
            return None, False


def _skip(text: _Text) -> bool:
    """Goes to what looks like the next event."""
    text.at = min(text.at + 1, len(text.text))
    while True:
        if found := _NEXT.search(text.text, text.at):
            text.at = found.start()
            return True
        text.at = max(text.at, len(text.text) - 64)
        if not text.more():
            return False
