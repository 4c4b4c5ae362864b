"""A program as HLO text: any stretch of its lines, without the rest."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from runs.programs import Program

_LAYOUT = re.compile(r"\{[^{}]*\}")
_HEAD = 2  # lines before the first computation
_WRITTEN = (*("computation", "name", "opcode", "shape", "given", "attributes", "op_name", "source", "backend", "root"),)
_AROUND = 3  # lines of a computation beside its instructions: its head, the closing brace, an empty one
CLIPPED = 240  # characters of a compiler's own configuration that a view shows; the whole text holds all


class Text:
    """The lines of a program, numbered from 0."""

    def __init__(self, program: Program):
        self._program = program
        self._rows: dict[str, list[Any]] = {c: program.column("instructions", c) for c in _WRITTEN}
        self._computations = program.frame("computations")
        self._counts: list[int] = program.column("computations", "instructions")
        self._first = self._computations["first"].to_numpy(dtype=np.int64)

    @property
    def lines(self) -> int:
        return _HEAD + len(self._rows["name"]) + _AROUND * len(self._computations)

    def line_of(self, instruction: np.ndarray | int) -> np.ndarray:
        """On which line instructions stand."""
        number = np.asarray(instruction)
        comp = np.asarray(self._rows["computation"], dtype=np.int64)[number]
        return _HEAD + number + _AROUND * comp + 1

    def head_of(self, computation: int) -> int:
        """On which line a computation begins."""
        return int(self._heads[computation])

    def stretch(self, start: int, count: int, clip: int | None = CLIPPED) -> Iterator[str]:
        """So many lines from `start` on. `clip`: letters of configuration shown; None: all."""
        for at in range(max(start, 0), min(start + count, self.lines)):
            yield self._line(at, clip)

    def whole(self) -> Iterator[str]:
        return self.stretch(0, self.lines, None)

    def _line(self, at: int, clip: int | None) -> str:
        if at < _HEAD:
            scheduled = ", is_scheduled=true" if self._program.scheduled else ""
            return f"HloModule {self._program.name}{scheduled}" if at == 0 else ""
        comp = int(np.searchsorted(self._heads, at, side="right")) - 1
        place = at - int(self._heads[comp])
        count = self._counts[comp]
        if place == 0:
            return self._head(comp)
        if place <= count:
            return self._instruction(int(self._first[comp]) + place - 1, clip)
        return "}" if place == count + 1 else ""

    @cached_property
    def _heads(self) -> np.ndarray:
        """The line of the head of each computation."""
        return _HEAD + self._first + _AROUND * np.arange(len(self._first))

    def _head(self, comp: int) -> str:
        row, first = self._computations.iloc[comp], int(self._first[comp])
        inside = range(first, first + int(row["instructions"]))
        rows = self._rows
        parameters = [n for n in inside if rows["opcode"][n] == "parameter"]
        parameters.sort(key=lambda n: int(rows["given"][n]))
        given = ", ".join(f"{rows['name'][n]}: {_bare(rows['shape'][n])}" for n in parameters)
        result = next((_bare(rows["shape"][n]) for n in inside if rows["root"][n]), "?")
        entry = "ENTRY " if row["kind"] == "entry" else ""
        return f"{entry}%{row['name']} ({given}) -> {result} {{"

    def _instruction(self, number: int, clip: int | None) -> str:
        row = {c: values[number] for c, values in self._rows.items()}
        names = [f"%{self._rows['name'][n]}" for n in self._operands_of(number)]
        given = ", ".join(filter(None, [row["given"], *names]))
        text = f"  {'ROOT ' if row['root'] else ''}%{row['name']} = {row['shape']} {row['opcode']}({given})"
        parts = [text, row["attributes"], _metadata(row), _backend(row["backend"], clip)]
        return ", ".join(filter(None, parts))

    def _operands_of(self, number: int) -> np.ndarray:
        edges, starts = self._edges
        return edges[starts[number] : starts[number + 1]]

    @cached_property
    def _edges(self) -> tuple[np.ndarray, np.ndarray]:
        table = self._program.tables["operands"]
        users = table["instruction"].to_numpy()
        starts = np.searchsorted(users, np.arange(len(self._rows["name"]) + 1))
        return table["operand"].to_numpy(), starts


def _bare(shape: str) -> str:
    return _LAYOUT.sub("", shape)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _metadata(row: dict[str, Any]) -> str:
    words = []
    if row["op_name"]:
        words.append(f'op_name="{_quoted(row["op_name"])}"')
    if row["source"]:
        file, _, line = row["source"].rpartition(":")
        words.append(f'source_file="{_quoted(file)}" source_line={line}')
    return f"metadata={{{' '.join(words)}}}" if words else ""


def _backend(text: str | None, clip: int | None) -> str:
    if not text:
        return ""
    more = len(text) - clip if clip is not None else 0
    return f"backend_config={text}" if more <= 0 else f"backend_config={text[:clip]}… ({more:,} letters more)"
