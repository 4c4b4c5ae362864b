"""The file that a compilation becomes: `chipledger.compiled`, version 1. Imported by the worker only."""

import base64
import json
import os
import re
from math import prod
from pathlib import Path
from typing import Any

import jax
import pyarrow as pa

FORMAT, VERSION = "chipledger.compiled", 1
LEVEL = 19  # of zstd: these files are kept for good
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# what the compiler says where memory does not suffice, before and after it has laid out buffers
_NEEDED = (
    re.compile(r"\(([\d.]+)([KMGT]?)\) exceeds available HBM \(([\d.]+)([KMGT]?)\)"),
    re.compile(r"Used ([\d.]+)([KMGT]?) of ([\d.]+)([KMGT]?) hbm"),
)
LONGEST_MESSAGE = 600


def of_compiled(name: str, compiled: Any) -> dict[str, Any]:
    """What is kept of one compiled program: the optimised HLO and the compiler's account of memory on one device."""
    (module, *_) = compiled.runtime_executable().hlo_modules()
    stats = compiled.memory_analysis()
    proto = module.as_serialized_hlo_module_proto()
    packed = pa.Codec("zstd", LEVEL).compress(proto, asbytes=True)
    return {
        "name": name,
        "runs_per_step": 1,
        "hlo": base64.b64encode(packed).decode(),
        "memory": {
            "arguments": stats.argument_size_in_bytes,
            "outputs": stats.output_size_in_bytes,
            "temporaries": stats.temp_size_in_bytes,
            "aliased": stats.alias_size_in_bytes,
            "code": stats.generated_code_size_in_bytes,
            "peak": stats.peak_memory_in_bytes or None,
        },
    }


def arguments(named: dict[str, Any]) -> list[dict[str, Any]]:
    """Name, global and per-device shape, type and logical bytes on one device of each array, in the program's order."""
    rows = []
    paths = [
        ((jax.tree_util.DictKey(name), *path), leaf)
        for name, tree in named.items()
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]
    ]
    for path, leaf in paths:
        sharding = getattr(leaf, "sharding", None)
        local = sharding.shard_shape(leaf.shape) if sharding is not None else leaf.shape
        rows.append(
            {
                "name": jax.tree_util.keystr(path, simple=True, separator="/"),
                "shape": list(local),
                "global_shape": list(leaf.shape),
                "dtype": leaf.dtype.name,
                "bytes": prod(local) * leaf.dtype.itemsize,
            }
        )
    return rows


def out_of_memory(error: BaseException) -> dict[str, Any] | None:
    """The answer that an error of the compiler holds where it says that memory does not suffice; else None."""
    text = str(error)
    if "RESOURCE_EXHAUSTED" not in text:
        return None
    found = next(filter(None, (pattern.search(text) for pattern in _NEEDED)), None)
    needed, limit = (_bytes(found[1], found[2]), _bytes(found[3], found[4])) if found else (None, None)
    return {"message": short(text), "needed_bytes": needed, "limit_bytes": limit}


def short(text: str) -> str:
    """The compiler's own words on one line, without what follows its first paragraph."""
    line = " ".join(text.split("\n\n")[0].split())
    return line if len(line) <= LONGEST_MESSAGE else line[:LONGEST_MESSAGE] + " ..."


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * _UNITS[unit])


def devices(mesh: jax.sharding.Mesh) -> list[dict[str, Any]]:
    """The devices in mesh order: number k runs partition k."""
    return [
        {
            "id": d.id,
            "coords": list(d.coords),
            "core": d.core_on_chip,
            "process": d.process_index,
            "slice": getattr(d, "slice_index", None) or 0,
        }
        for d in mesh.devices.flat
    ]


def write(path: Path, content: dict[str, Any]) -> None:
    """Whole or not at all."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(json.dumps({"format": FORMAT, "version": VERSION, **content}, allow_nan=False))
    partial.replace(path)
