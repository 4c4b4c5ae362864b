"""The content of a `*.compiled.json`, checked: everything in it may be damaged or made up."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any

import pyarrow as pa

from collectors.own import sidecar
from collectors.reading.textlog import clean
from errors import InputError

FORMAT, VERSION = "chipledger.compiled", 1
OUTCOMES = ("compiled", "out_of_memory")
MEMORY = ("arguments", "outputs", "temporaries", "aliased", "code", "peak")
HLO_LIMIT_BYTES = 1 << 28  # of one program: a larger one would take gigabytes as a message
_INT64 = 1 << 63
_LISTS = {"programs": 64, "arguments": 200_000, "devices": 1 << 17, "matmuls": 200_000}
_TEXT = 10_000  # characters


@dataclass(frozen=True, kw_only=True)
class Argument:
    name: str
    bytes: int | None
    shape: str | None


@dataclass(frozen=True, kw_only=True)
class Program:
    """One program: `memory` in padded bytes of one device (None: not said), `hlo` the proto as it was compressed."""

    name: str
    runs_per_step: int
    memory: Mapping[str, int | None]
    arguments: tuple[Argument, ...]
    model_flops: float | None
    matmuls: tuple[dict[str, Any], ...] | None
    hlo: str | None

    def proto(self, where: str) -> bytes | None:
        """The HLO, unpacked. Raises InputError where it is no base64 of zstd, or too large."""
        if self.hlo is None:
            return None
        where = f"{where}: the HLO of program {self.name!r}"
        try:
            packed = base64.b64decode(self.hlo, validate=True)
            with pa.input_stream(pa.py_buffer(packed), compression="zstd") as stream:
                data = stream.read(HLO_LIMIT_BYTES + 1)
        except (binascii.Error, ValueError, OSError) as e:
            raise InputError(
                f"cannot be unpacked ({str(e)[:200]})", where=where, expected="base64 of a zstd frame"
            ) from e
        if len(data) > HLO_LIMIT_BYTES:
            raise InputError(f"unpacks to more than {HLO_LIMIT_BYTES:,} bytes", where=where)
        return data


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A compile: what was asked (`facts`), how it ended, the devices in mesh order as (identifier, slice), programs."""

    facts: Mapping[str, Any]
    outcome: str
    message: str
    needed_bytes: int | None
    limit_bytes: int | None
    mesh: Mapping[str, int]
    devices: tuple[tuple[int, int], ...]
    programs: tuple[Program, ...]


def parse(data: bytes, where: str) -> Compiled:
    """The file. Raises InputError, saying which entry is wrong, for anything that is not of the format."""
    try:
        said = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as e:
        raise InputError(f"not JSON ({str(e)[:200]})", where=where, expected="what `chipledger compile` wrote") from e
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise InputError("no compiled program", where=where, expected=f'an object with "format": "{FORMAT}"')
    if said.get("version") != VERSION:
        raise InputError(
            f"version {str(said.get('version'))[:20]} of the format",
            where=where,
            expected=f"version {VERSION}",
            advice="Compile again with this version of Chipledger.",
        )
    check = _Check(where)
    outcome = said.get("outcome")
    if outcome not in OUTCOMES:
        raise InputError(f"outcome is {str(outcome)[:40]!r}", where=where, expected=" or ".join(OUTCOMES))
    facts = check.facts(said.get("facts"))
    mesh = facts.get("parallelism")
    mesh = check.mesh(mesh) if isinstance(mesh, dict) else {}
    devices = check.devices(said.get("devices"))
    if devices and mesh and len(devices) != prod(mesh.values()):
        raise InputError(
            f"{len(devices):,} devices for a mesh of {prod(mesh.values()):,}",
            where=f"{where}: devices",
            expected="a device for each place of the mesh",
        )
    programs = check.list(said.get("programs"), "programs")
    return Compiled(
        facts=facts,
        outcome=outcome,
        message=check.text(said.get("message"), "message") or "",
        needed_bytes=check.whole(said.get("needed_bytes"), "needed_bytes"),
        limit_bytes=check.whole(said.get("limit_bytes"), "limit_bytes"),
        mesh=mesh,
        devices=devices,
        programs=tuple(check.program(p, f"programs[{n}]") for n, p in enumerate(programs)),
    )


class _Check:
    """Checks values by type; None is always allowed and stands for what is not known."""

    def __init__(self, where: str):
        self._where = where

    def wrong(self, what: str, expected: str) -> InputError:
        return InputError(f"{what} is not {expected}", where=self._where, expected=expected)

    def text(self, value: Any, what: str) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str) or len(value) > _TEXT:
            raise self.wrong(what, f"text of at most {_TEXT:,} characters")
        return clean(value)

    def whole(self, value: Any, what: str) -> int | None:
        """A whole number from 0; one written as 1e3 counts."""
        if isinstance(value, float) and isfinite(value) and value == int(value):
            value = int(value)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _INT64:
            raise self.wrong(what, "a whole number from 0")
        return value

    def number(self, value: Any, what: str) -> float | None:
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e30:
            raise self.wrong(what, "a number from 0")
        return float(value)

    def object(self, value: Any, what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(what, "an object")
        return value

    def list(self, value: Any, what: str) -> list[Any]:
        most = _LISTS[what.rpartition(".")[2]]
        if value is not None and (not isinstance(value, list) or len(value) > most):
            raise self.wrong(what, f"a list of at most {most:,}")
        return value or []

    def facts(self, value: Any) -> dict[str, Any]:
        """The facts that have a value: text, numbers, yes or no, or an object of those (a model, a mesh)."""
        found = {}
        for key, one in self.object(value, "facts").items():
            name = f"facts.{key[:100]}"
            if isinstance(one, dict) and len(one) <= 200:
                found[key] = {clean(k[:200]): self._plain(v, f"{name}.{k[:100]}") for k, v in one.items()}
            elif one is not None:
                found[key] = self._plain(one, name)
        if len(found) > 200:
            raise self.wrong("facts", "an object of at most 200 entries")
        for key in found.keys() & sidecar.KEYS.keys():
            sidecar.check(key, found[key], f"{self._where}: facts")
        return {clean(k[:200]): v for k, v in found.items()}

    def _plain(self, value: Any, what: str) -> Any:
        if isinstance(value, str):
            return self.text(value, what)
        if isinstance(value, list) and len(value) <= 1000 and all(isinstance(v, str | int) for v in value):
            return [self._plain(v, what) for v in value]
        if value is None or isinstance(value, bool):
            return value
        if not isinstance(value, int | float) or not abs(value) < 1e30:
            raise self.wrong(what, "text, a number, yes or no")
        return value

    def mesh(self, value: Mapping[str, Any]) -> dict[str, int]:
        axes = {k: self.whole(v, f"facts.parallelism.{k[:100]}") or 0 for k, v in value.items()}
        if len(axes) > 16 or any(not n for n in axes.values()) or prod(axes.values()) > _LISTS["devices"]:
            raise self.wrong("facts.parallelism", "axes with sizes from 1")
        return axes

    def devices(self, value: Any) -> tuple[tuple[int, int], ...]:
        entries = [self.object(d, f"devices[{n}]") for n, d in enumerate(self.list(value, "devices"))]
        found = [
            (self.whole(d.get("id"), f"devices[{n}].id"), self.whole(d.get("slice"), f"devices[{n}].slice") or 0)
            for n, d in enumerate(entries)
        ]
        named = tuple((identifier, place) for identifier, place in found if identifier is not None)
        if len({identifier for identifier, _ in named}) != len(found):
            raise self.wrong("devices", "a list of devices, each with an id of its own")
        return named

    def program(self, value: Any, what: str) -> Program:
        said = self.object(value, what)
        memory = self.object(said.get("memory") or {}, f"{what}.memory")
        hlo, matmuls = said.get("hlo"), said.get("matmuls")
        if hlo is not None and not isinstance(hlo, str):
            raise self.wrong(f"{what}.hlo", "text (base64) or null")
        runs = self.whole(said.get("runs_per_step"), f"{what}.runs_per_step")
        return Program(
            name=(self.text(said.get("name"), f"{what}.name") or "program")[:500],
            runs_per_step=1 if runs is None else runs,
            memory={k: self.whole(memory.get(k), f"{what}.memory.{k}") for k in MEMORY},
            arguments=tuple(
                self.argument(a, f"{what}.arguments[{n}]")
                for n, a in enumerate(self.list(said.get("arguments"), f"{what}.arguments"))
            ),
            model_flops=self.number(said.get("model_flops"), f"{what}.model_flops"),
            matmuls=None
            if matmuls is None
            else tuple(
                self.matmul(m, f"{what}.matmuls[{n}]") for n, m in enumerate(self.list(matmuls, f"{what}.matmuls"))
            ),
            hlo=hlo,
        )

    def argument(self, value: Any, what: str) -> Argument:
        said = self.object(value, what)
        shape, kind = said.get("shape"), self.text(said.get("dtype"), f"{what}.dtype")
        if shape is not None and not (isinstance(shape, list) and len(shape) <= 64):
            raise self.wrong(f"{what}.shape", "a list of sizes")
        sizes = None if shape is None else ",".join(str(self.whole(n, f"{what}.shape")) for n in shape)
        return Argument(
            name=(self.text(said.get("name"), f"{what}.name") or "argument")[:500],
            bytes=self.whole(said.get("bytes"), f"{what}.bytes"),
            shape=None if sizes is None or kind is None else f"{kind[:50]}[{sizes}]",
        )

    def matmul(self, value: Any, what: str) -> dict[str, Any]:
        said = self.object(value, what)
        row: dict[str, Any] = {k: self.whole(said.get(k), f"{what}.{k}") for k in ("m", "k", "n")}
        if None in row.values():
            raise self.wrong(what, "an object with m, k and n")
        for key in ("batch", "count"):
            given = self.whole(said.get(key), f"{what}.{key}")
            row[key] = 1 if given is None else given
        return row | {"op": (self.text(said.get("name"), f"{what}.name") or "matmul")[:500]}
