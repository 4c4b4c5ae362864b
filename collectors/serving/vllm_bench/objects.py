"""JSON objects of any size, one after another: a single one, one a line, in an array, or joined by newlines.

Detailed results hold a list of gaps for each request in one object, far more than
`collectors.reading.json_stream` takes.
"""

import json
import re
from collections.abc import Iterator
from math import inf
from typing import Any

from collectors.base import Source
from collectors.reading.json_stream import Vain
from collectors.reading.textlog import Tally
from errors import InputError

MOST_BYTES = 1 << 29  # a result with the gaps of 20 million tokens takes about 400 MB
_NEXT = re.compile(r"[^\s,\[\]]")
_RESUME = re.compile(r"\n(?=[^\S\n]*+\{)|\}\s*+,\s*+(?=\{)")
_DECODER = json.JSONDecoder(strict=False, parse_constant={"Infinity": inf}.get)  # NaN and -Infinity: not known


def objects(source: Source, tally: Tally) -> Iterator[tuple[int, dict[str, Any]]]:
    """(byte offset, object) for each object at the top or in a list there; what is none goes to `tally`.

    Raises InputError for a file of more than MOST_BYTES.
    """
    with source.open() as f:
        raw = f.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise InputError(
            f"more than {MOST_BYTES >> 20:,} MiB of results in one file",
            where=source.name,
            expected="the result of a benchmark",
            advice="Save each load in a file of its own.",
        )
    text = raw.decode("utf-8", "surrogateescape")
    plain = len(text) == len(raw)
    del raw
    known = (0, 0)  # a character and its byte: counting starts where it ended before

    def offset(position: int) -> int:
        nonlocal known
        if plain:
            return position
        between = text[known[0] : position].encode("utf-8", "surrogateescape")
        known = position, known[1] + len(between)
        return known[1]

    position, vain = (1 if text.startswith("\ufeff") else 0), Vain()
    while match := _NEXT.search(text, position):
        position = match.start()
        if text[position] != "{":
            tally.add("pieces of text", "they are no JSON objects", offset(position))
        else:
            try:
                value, position = _DECODER.raw_decode(text, position)
            except (ValueError, RecursionError) as e:
                if vain.too_much(e, text, position, position):
                    raise InputError(
                        f"JSON objects that begin within one another and do not end, up to byte {offset(position):,}",
                        where=source.name,
                        expected="the result of a benchmark",
                    ) from e
                cut = not _RESUME.search(text, position + 1)
                tally.add(
                    *(
                        ("the last object", "the file ends in the middle of it, or it is broken")
                        if cut
                        else ("objects", "they are not valid JSON")
                    ),
                    offset(position),
                )
            else:
                yield offset(match.start()), value
                continue
        resume = _RESUME.search(text, position + 1)
        if not resume:
            return
        position = resume.end()
