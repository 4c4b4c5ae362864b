"""JSON objects one after another, whether a file holds them a line each, in one array, or pretty-printed."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from math import inf
from typing import Any

from collectors.base import Source
from collectors.reading.textlog import Tally
from errors import InputError

CHUNK = 1 << 20
OBJECT_LIMIT = 1 << 22  # characters; Cloud Logging allows 256 KiB an entry
BROKEN_LIMIT = 10_000  # with more broken than good objects, the file is something else
_VAIN, _VAIN_TIMES = 1 << 26, 8  # characters that may be looked at in vain, and how many more for each that was passed
BOM = b"\xef\xbb\xbf"
_BOM = BOM.decode("latin-1")
_NEXT = re.compile(r"[^\s,\[\]]")
_BRACKET = re.compile(r"[\[{]")
_DEEPEST = 900  # brackets that are open at once: Python's decoder takes some more
_RESUME = re.compile(r"\n|\}\s*,\s*(?=\{)")
_UNSURE = re.compile(r"(?:\}\s*(?:,\s*)?)?\Z")  # the beginning of what _RESUME looks for, at the end of what was read
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)  # NaN and Infinity are no JSON: not known
_PATIENT = json.JSONDecoder(  # the same for numbers of any length, at the cost of a call for each
    strict=False, parse_constant=lambda _: None, parse_int=lambda digits: int(digits) if len(digits) < 400 else inf
)


def objects(source: Source, tally: Tally) -> Iterator[tuple[int, dict]]:
    """(byte offset, object) for each; what is no object is counted in `tally`, never fatal.

    Raises InputError where the file is more broken than whole.
    """
    with source.as_far() as f:
        yield from Walk(source.name, tally).objects(f.read)


class Ended(Exception):
    """A text ends where a value would go on, or what stands there is none."""


class Vain:
    """What was looked at of one text without an object coming of it. Where brackets open line after line and none
    closes, each line is the beginning of an object that is looked for to the end of a thousand others."""

    def __init__(self) -> None:
        self._read = 0

    def too_much(self, error: Exception, text: str, begin: int, passed: int) -> bool:
        """Notes a value that did not come of what begins at `begin`; whether it is time to give up, `passed` characters
        from where the text began."""
        end = error.pos if isinstance(error, json.JSONDecodeError) else _too_deep(text, begin)
        self._read += end - begin
        return self._read > _VAIN + _VAIN_TIMES * passed


def _too_deep(text: str, begin: int) -> int:
    """About where brackets are too many for a decoder that gave up."""
    end = min(len(text), begin + OBJECT_LIMIT)
    found = next(islice(_BRACKET.finditer(text, begin, end), _DEEPEST, None), None)
    return found.start() if found else end


class Walk:
    """A walk over the objects of one file, in one go or in pieces: how many were good and broken, and how far it is."""

    def __init__(self, name: str, tally: Tally):
        self.name, self.tally = name, tally
        self.good = self.broken = 0
        self._vain = Vain()
        self.at = 0  # byte offset behind the last object, and behind what separates it from the next

    def objects(
        self, read: Callable[[int], bytes], base: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, dict]]:
        """(byte offset, object) for each from `base` on, where `read` begins, to the first that begins at `stop`.

        Raises InputError where more was broken than good so far.
        """
        # Latin-1 maps each byte to one character, so that positions are byte offsets; text is decoded by object.
        buffer, position, at_end, damaged = "", 0, False, False
        while True:
            if damaged:  # on to the next line, or to where another object may begin
                resume = _RESUME.search(buffer, position)
                damaged = not resume
                unsure = resume or _UNSURE.search(buffer, position)
                assert unsure is not None, "the second pattern fits at the end of anything"
                position = unsure.end() if resume else unsure.start()
            match = None if damaged else _NEXT.search(buffer, position)
            position = position if damaged else match.start() if match else len(buffer)
            self.at = base + position
            if stop is not None and self.at >= stop and not damaged:
                return
            is_object = bool(match) and buffer[position] == "{"
            if is_object and (found := self._decode(buffer, position)):
                self.good += 1
                position = found[1]
                yield self.at, found[0]
            elif not at_end and (not match or (is_object and len(buffer) - position < OBJECT_LIMIT)):
                more = read(CHUNK).decode("latin-1")
                at_end = not more
                base += position
                buffer, position = buffer[position:] + more, 0
                if base == 0 and buffer.startswith(_BOM):
                    position = len(_BOM)
            elif not match:
                return
            else:
                self._count_damage(is_object, at_end and not _RESUME.search(buffer, position))
                damaged, position = True, position + is_object

    def _decode(self, buffer: str, position: int) -> tuple[dict, int] | None:
        try:
            return _decode(buffer, position)
        except (ValueError, RecursionError) as e:
            if self._vain.too_much(e, buffer, position, self.at):
                raise InputError(
                    f"JSON objects that begin within one another and do not end, up to byte {self.at:,}",
                    where=self.name,
                    expected="log entries as JSON, one a line or in an array",
                ) from e
        return None

    def _count_damage(self, is_object: bool, cut_off: bool) -> None:
        if is_object and cut_off:
            self.tally.add("the last object", "the file ends in the middle of it", self.at)
        elif is_object:
            self.tally.add("objects", "they are not valid JSON", self.at)
        else:
            self.tally.add("pieces of text", "they are no JSON objects", self.at)
        self.broken += is_object
        if self.broken > max(BROKEN_LIMIT, self.good):
            raise InputError(
                f"{self.broken:,} broken JSON objects, {self.good:,} good ones",
                where=self.name,
                expected="log entries as JSON, one a line or in an array",
            )


def first(piece: bytes) -> tuple[dict, int] | None:
    """(the object that `piece` begins with, where it ends); None where it begins with none."""
    with contextlib.suppress(ValueError, RecursionError):
        return _decode(piece.decode("latin-1"), 0) if piece.startswith(b"{") else None
    return None


def value(buffer: str, position: int) -> tuple[Any, int] | None:
    """(the value of any kind that begins at a position, where it ends); None where none ends there, or it is too long.
    `buffer`: a character for each byte."""
    with contextlib.suppress(ValueError, RecursionError):
        return _decode(buffer, position)
    return None


def _decode(buffer: str, position: int) -> tuple[Any, int] | None:
    """(value, where it ends); None where it is too long. Raises ValueError or RecursionError where it is incomplete or
    no JSON."""
    try:
        return _decoded(buffer, position, _DECODER)
    except json.JSONDecodeError:
        raise
    except ValueError:  # a number of more digits than Python reads
        return _decoded(buffer, position, _PATIENT)


def _decoded(buffer: str, position: int, decoder: json.JSONDecoder) -> tuple[Any, int] | None:
    value, end = decoder.raw_decode(buffer, position)
    if end - position > OBJECT_LIMIT:
        return None
    text = buffer[position:end]
    if not text.isascii():  # all JSON punctuation is ASCII, so decoding as UTF-8 leaves the structure as it was
        value = decoder.decode(text.encode("latin-1").decode("utf-8", "replace"))
    return value, end
