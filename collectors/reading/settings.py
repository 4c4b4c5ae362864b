"""Settings that a log prints: variables of the environment, flags of XLA, arguments of an engine.

Forms, each of which holds a name of `catalog.settings` where it says so:

    NCCL_DEBUG=TRACE                      env, printenv; behind `export `, `declare -x ` or `setenv ` as shells print it
    + export NCCL_DEBUG=TRACE             a trace of the shell (set -x)
    [launch.py:139:main] 0 NCCL_DEBUG=..  DeepSpeed's launcher
    ... NCCL INFO NCCL_DEBUG set by environment to TRACE
          NCCL_DEBUG:  TRACE              kubectl describe; `- name: NCCL_DEBUG`, `value: TRACE` below it: a manifest
    {'NCCL_DEBUG': 'TRACE', ...}          Python's os.environ, a Ray job's env_vars
    non-default args: {'enforce_eager': True}      arguments as vLLM, SGLang and Megatron print them
    + vllm serve M --enforce-eager        a command in a trace

Prose names settings too ("consider passing CUDA_LAUNCH_BLOCKING=1"), so a line must be one of these from its beginning
or to its end. Of an environment nothing else is kept: it holds secrets.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.settings import ARGUMENT, BY_NAME, FLAG, HOLDERS, VARIABLE, gate, kept
from collectors.base import Rows, Source
from collectors.reading.line_prefix import bare, host_prefix
from collectors.reading.textlog import Buffer, Tally, clean

MOST = 10_000  # rows of one input: more hosts than that need not be told apart
LONGEST = 1 << 16  # characters of a line that are looked at: a list of flags may be long
_HEAD = 200
_PIECE_BYTES = 1 << 20
_NAMES = (*(s.name for s in BY_NAME.values() if s.kind == VARIABLE), *HOLDERS)
_VARIABLES = "|".join(_NAMES)
_ARGUMENTS = "|".join(s.name for s in BY_NAME.values() if s.kind == ARGUMENT)
_FLAGS = {s.name for s in BY_NAME.values() if s.kind == FLAG}
_BEFORE = (
    r"(?:\++ )?(?:export |declare -x )?['\"]?",
    r"[IWEF]\d{4,8} \d\d:\d\d:\d\d(?:\.\d+)? +\d+ [\w.]+:\d+\] (?:\w+: )?",  # of glog and absl
    r"(?:\[[^\]]*\] ?)*\[launch\.py:\d+:main\] \d+ ",
)
_ASSIGNED = re.compile(rf"(?:{'|'.join(_BEFORE)})({_VARIABLES})=(.*)")
_SETENV = re.compile(rf"(?:\++ )?setenv ({_VARIABLES}) (.*)")
_NCCL = "NCCL INFO "
_NCCL_SET = re.compile(rf"{_NCCL}({_VARIABLES}) set by environment to (\S+?)\.?\s*$")
_NCCL_HOST = re.compile(r"(?<![\w.-])([\w.-]{1,253}):\d+:\d+ \[\d+\] $")
_DESCRIBED = re.compile(rf"\s+({_VARIABLES}):\s+(.*)")
_NAMED = re.compile(rf"\s*- name: ['\"]?({_VARIABLES})['\"]?\s*$")
_VALUE = re.compile(r"\s+value: ?(.*)")
_QUOTED = re.compile(rf"(['\"])({_VARIABLES})\1: (?:'([^']{{0,8192}})'|\"([^\"]{{0,8192}})\")")
_ARGUMENT = re.compile(rf"(?<![\w-])({_ARGUMENTS})['\"]?(?:=|: | \.{{2,}} )(True|False)\b")
_ARGUMENTS_OF = re.compile(r"non-default args|with config: |ServerArgs\(|args: Namespace\(|^\s+\w+ \.{2,} ")
_OPTION = re.compile(rf"(?<!\S)--({_ARGUMENTS.replace('_', '-')})(?!\S)")
_EAGER = "Enforce eager set, "
_FLAG = re.compile(r"--?(\w+)(?:=(\S*))?")


class Told(NamedTuple):
    """A setting that a line tells of, with its value as it is kept, the variable whose flag it is, and the host that
    the line names of itself. A name that is empty: such a variable holds no flag that is known."""

    name: str
    value: str
    holder: str = ""
    host: str | None = None


def told_by(line: str, following: str = "") -> list[Told]:
    """The settings that a line tells of; `following`: the line below it."""
    text = bare(line)
    if match := _ASSIGNED.match(text) or _SETENV.match(text) or _DESCRIBED.match(text):
        return _assigned(match[1], match[2])
    if (at := text.find(_NCCL)) >= 0 and (match := _NCCL_SET.match(text, at)):
        host = _NCCL_HOST.search(text[max(0, at - _HEAD) : at])
        return [one._replace(host=host and host[1]) for one in _assigned(match[1], match[2])]
    if match := _NAMED.match(text):
        value = _VALUE.match(bare(following))
        return _assigned(match[1], value[1]) if value else []
    if _EAGER in text:
        return [Told("enforce_eager", "True")]
    found = [one for _, name, *value in _QUOTED.findall(text) for one in _assigned(name, value[0] or value[1])]
    if _ARGUMENTS_OF.search(text):
        found += [Told(name, value) for name, value in _ARGUMENT.findall(text)]
    if text.startswith("+"):
        found += [Told(name.replace("-", "_"), "True") for name in _OPTION.findall(text)]
    return found


def _assigned(name: str, value: str) -> list[Told]:
    """A variable with its value as printed, or of one that holds flags those that are known."""
    value = value.strip()
    if value[:1] in ("'", '"'):
        value = value[1:].partition(value[0])[0]
    value = value.removesuffix("'")  # of a word that was quoted whole, `export 'NAME=...'`
    if name not in HOLDERS:
        return [] if " " in value else [Told(name, kept(value))]  # else prose that begins with a name
    flags = ((m[1], m[2]) for m in map(_FLAG.fullmatch, value.split()) if m and m[1] in _FLAGS)
    return [Told(flag, kept("true" if said is None else said), name) for flag, said in flags] or [Told("", "", name)]


def tells(lines: Sequence[str]) -> bool:
    """Whether any of these lines tells of a setting."""
    following = (*lines[1:], "")
    return any(one.name for i in gated(lines) for one in told_by(lines[i], following[i]))


def gated(lines: Sequence[str]) -> list[int]:
    """Which lines hold a name at all: one pass over all of them."""
    if not lines:
        return []
    array = pa.array([clean(line) for line in lines], pa.string())
    told = pc.match_substring_regex(array, gate(), ignore_case=True)
    return [int(i) for i in np.flatnonzero(told.to_numpy(zero_copy_only=False))]


class Settings:
    """Rows of `settings` from the lines of one input. What is said again is not told again, so that a dump of each of a
    thousand ranks is that of one; a value that changes is."""

    def __init__(self, source: Source, tally: Tally):
        self._source, self._tally = source, tally
        self._found: list[tuple] = []
        self._last: dict[tuple[str, str | None], tuple[str, int | None]] = {}
        self._flags: dict[tuple[str, str | None], set[str]] = {}  # of each variable that holds some, by host

    def see(self, line: str, following: str, offset: int, attempt: int | None, step: int | None) -> None:
        """Look at a line, and at the one below it. `attempt` and `step` are those that it stands in."""
        if told := told_by(line, following):
            self._note(told, host_prefix(line[:_HEAD]), offset, attempt, step)

    def environment(self, variables: Mapping[str, object], host: str | None) -> None:
        """An environment that a profile keeps as a whole, not in a line of a log."""
        known = (name for name in _NAMES if isinstance(variables.get(name), str))
        self._note([one for name in known for one in _assigned(name, str(variables[name]))], host)

    def _note(
        self,
        told: Sequence[Told],
        host: str | None,
        offset: int | None = None,
        attempt: int | None = None,
        step: int | None = None,
    ) -> None:
        told = [one._replace(host=one.host or host) for one in told]
        for one in (*told, *self._left_out(told)):
            if one.name and self._last.get((one.name, one.host)) != (one.value, attempt):
                self._take(one, offset, attempt, step)

    def _left_out(self, told: Sequence[Told]) -> list[Told]:
        """Flags that a variable held before and holds no more."""
        gone: list[Told] = []
        for key in {(one.holder, one.host) for one in told if one.holder}:
            now = {one.name for one in told if one.holder == key[0] and one.name}
            gone += [Told(name, "", *key) for name in sorted(self._flags.get(key, now) - now)]
            if now or key in self._flags:
                self._flags[key] = now
        return gone

    def _take(self, told: Told, offset: int | None, attempt: int | None, step: int | None) -> None:
        if len(self._found) >= MOST:
            self._tally.add("settings of the job", f"of one input {MOST:,} are kept", offset)
            return
        self._last[told.name, told.host] = told.value, attempt
        self._found.append((attempt, step, told.host and clean(told.host), told.name, told.value, offset))

    def rest(self) -> Iterator[Rows]:
        """What was found, with the lines that it stands in."""
        if not self._found:
            return
        rows = Buffer("settings", "attempt", "step", "host", "name", "value", "offset", "line", "order", "source")
        numbers = self._line_numbers([offset for *_, offset in self._found if offset is not None])
        for order, (*told, offset) in enumerate(self._found):
            rows.add(*told, offset, offset if offset is None else numbers.get(offset), order, clean(self._source.name))
        self._found = []
        yield from rows.rest()

    def _line_numbers(self, offsets: list[int]) -> dict[int, int]:
        """The number of the line at each of these offsets, from 1; none of lines that were taken out of something."""
        if self._source.content != self._source.path:
            return {}
        numbers, line, at = {}, 1, 0
        with self._source.open() as f:
            for offset in sorted(set(offsets)):
                while at < offset and (piece := f.read(min(offset - at, _PIECE_BYTES))):
                    line, at = line + piece.count(b"\n"), at + len(piece)
                numbers[offset] = line
        return numbers
