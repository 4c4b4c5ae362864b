"""JSON objects one after another, whether a file holds them a line each, in one array, or pretty-printed."""

import json
import re
from collections.abc import Iterator

from collectors.base import Source
from collectors.textlog import Tally
from errors import InputError

CHUNK = 1 << 20
OBJECT_LIMIT = 1 << 22  # characters; Cloud Logging allows 256 KiB an entry
BROKEN_LIMIT = 10_000  # with more broken than good objects, the file is something else
_BOM = b"\xef\xbb\xbf".decode("latin-1")
_NEXT = re.compile(r"[^\s,\[\]]")
_RESUME = re.compile(r"\n|\}\s*,\s*(?=\{)")
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)  # NaN and Infinity are no JSON: not known


def objects(source: Source, tally: Tally) -> Iterator[tuple[int, dict]]:
    """(byte offset, object) for each; what is no object is counted in `tally`, never fatal.

    Raises InputError where the file is more broken than whole.
    """
    good = broken = 0
    # Latin-1 maps each byte to one character, so that positions are byte offsets; text is decoded object by object.
    buffer, base, position, at_end = "", 0, 0, False
    with source.open() as f:
        while True:
            match = _NEXT.search(buffer, position)
            position = match.start() if match else len(buffer)
            is_object = bool(match) and buffer[position] == "{"
            if is_object and (found := _decode(buffer, position)):
                yield base + position, found[0]
                position, good = found[1], good + 1
                continue
            if not at_end and (not match or (is_object and len(buffer) - position < OBJECT_LIMIT)):
                more = f.read(CHUNK).decode("latin-1")
                at_end = not more
                base += position
                buffer, position = buffer[position:] + more, 0
                if base == 0 and buffer.startswith(_BOM):
                    position = len(_BOM)
                continue
            if not match:
                return
            resume = _RESUME.search(buffer, position + 1)
            if is_object and not resume and at_end:
                tally.add("the last object", "the file ends in the middle of it", base + position)
            elif is_object:
                tally.add("objects", "they are not valid JSON", base + position)
            else:
                tally.add("pieces of text", "they are no JSON objects", base + position)
            broken += is_object
            if broken > max(BROKEN_LIMIT, good):
                raise InputError(
                    f"{broken:,} broken JSON objects, {good:,} good ones", where=source.name,
                    expected="log entries as JSON, one a line or in an array",
                )  # fmt: skip
            position = resume.end() if resume else len(buffer)


def _decode(buffer: str, position: int) -> tuple[dict, int] | None:
    """(object, where it ends), or None where it is incomplete or no JSON."""
    try:
        value, end = _DECODER.raw_decode(buffer, position)
        text = buffer[position:end]
        if not text.isascii():  # all JSON punctuation is ASCII, so decoding as UTF-8 leaves the structure as it was
            value = _DECODER.decode(text.encode("latin-1").decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value, end
