"""Bytes that an array takes in device memory with its tiled layout, as HLO text prints both."""

import re
from dataclasses import dataclass
from math import prod

import pandas as pd

from runs.tables import Tables, frame

_SHAPE = re.compile(r"\b([a-z]\w*)\[([\d,]{0,400})\]\{([\d,]{0,200})(?::([A-Z][^}]{0,200}))?\}")
_TILES = re.compile(r"T((?:\([\d,]+\)){1,8})")
_BITS = {"pred": 8, "token": 0, "opaque": 0, "bf16": 16}
BUFFERS = ("peak_buffer", "argument")  # kinds of `memory` that tell padded bytes of arrays; the first there is counts
SHOWN = 5


@dataclass(frozen=True)
class Buffer:
    """One array: its name and shape, what it holds and what it takes, in bytes."""

    name: str
    shape: str
    bytes: int
    padded_bytes: int


@dataclass(frozen=True)
class HbmPadding:
    """Logical and padded bytes of the arrays counted, what they are, and those that lose most."""

    bytes: int
    padded_bytes: int
    counted: str
    worst: tuple[Buffer, ...]

    @property
    def tax(self) -> float:
        """padded / logical - 1."""
        return self.padded_bytes / self.bytes - 1 if self.bytes else 0.0


def padded_bytes(
    dims: tuple[int, ...], minor_to_major: tuple[int, ...], tiles: tuple[tuple[int, ...], ...], element_bits: int
) -> int:
    """Bytes with every tiling applied: the last dimensions, in order of memory, are rounded up to whole tiles.

    `dims` as the program counts them; `minor_to_major[0]` is the dimension that runs fastest in memory. A second tile
    divides what the first left: f32 [8, 64] with T(8,128) takes [8, 128]; bf16 T(8,128)(2,1) packs pairs of rows.
    """
    shape = [dims[d] for d in reversed(minor_to_major)] if dims else []
    for tile in tiles:
        shape = [1] * (len(tile) - len(shape)) + shape
        outer = shape[: len(shape) - len(tile)]
        inner = shape[len(shape) - len(tile) :]
        shape = outer + [-(-size // t) for size, t in zip(inner, tile, strict=True)] + list(tile)
    return -(-prod(shape) * element_bits // 8)


def shapes(text: str) -> list[Buffer]:
    """The arrays in a text such as `bf16[8,64]{1,0:T(8,128)(2,1)} x ...` that are tiled and lie in device memory.

    Arrays that the compiler put into faster memory (`S(1)` and above) are left out.
    """
    found = []
    for match in _SHAPE.finditer(text):
        kind, dims_text, order_text, more = match.groups()
        tiling = _TILES.search(more or "")
        dims, order = _numbers(dims_text), _numbers(order_text)
        if not tiling or re.search(r"S\([1-9]", more) or sorted(order) != list(range(len(dims))):
            continue
        tiles = tuple(_numbers(t) for t in tiling[1][1:-1].split(")("))
        bits = _bits(kind)
        if bits and all(min(t) > 0 for t in tiles):
            found.append(Buffer(kind, match[0], -(-prod(dims) * bits // 8), padded_bytes(dims, order, tiles, bits)))
    return found


def hbm_padding(tables: Tables, layouts: pd.Series | None = None) -> HbmPadding | None:
    """What layouts add in device memory: to the buffers of the one program that holds most at once, else to operands of
    products. Programs do not hold theirs at one time, and captures tell of the same program again.

    `layouts`: texts as in `matmuls.layout`; each distinct array counts once. None where nothing tells.
    """
    rows = frame(tables, "memory", ["capture", "program", "kind", "name", "shape", "bytes", "padded_bytes"])
    rows = rows[rows["kind"].astype(str).isin(BUFFERS) & rows["padded_bytes"].notna() & (rows["bytes"] > 0)]
    for kind in BUFFERS:
        mine = rows[rows["kind"].astype(str) == kind]
        if len(mine):
            mine, name = _fullest(tables, mine)
            worst = mine.assign(lost=mine["padded_bytes"] - mine["bytes"]).nlargest(SHOWN, "lost")
            worst = worst[worst["lost"] > 0]
            names, texts = (worst[c].astype(object).fillna("not told") for c in ("name", "shape"))
            buffers = zip(names, texts, worst["bytes"], worst["padded_bytes"], strict=True)
            counted = "buffers alive at the peak" if kind == "peak_buffer" else "inputs"
            counted += f" of {name}" if name else ""
            whole = int(mine["bytes"].sum()), int(mine["padded_bytes"].sum())
            return HbmPadding(*whole, counted, tuple(Buffer(n, s, int(b), int(p)) for n, s, b, p in buffers))
    arrays = {b.shape: b for text in (layouts if layouts is not None else ()) for b in shapes(str(text))}
    if not arrays:
        return None
    lost = sorted(arrays.values(), key=lambda b: b.bytes - b.padded_bytes)[:SHOWN]
    return HbmPadding(
        sum(b.bytes for b in arrays.values()),
        sum(b.padded_bytes for b in arrays.values()),
        "operands and results of the matrix products, each once",
        tuple(b for b in lost if b.padded_bytes > b.bytes),
    )


def _fullest(tables: Tables, rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows of the program that takes most in device memory, as one capture tells them, and its name, if known."""
    keys = [rows[name].fillna(-1).astype("int64") for name in ("capture", "program")]
    capture, program = rows["padded_bytes"].groupby(keys).sum().idxmax()
    names = frame(tables, "modules", ["capture", "program", "name"])
    mine = names["capture"].fillna(-1).eq(capture) & names["program"].fillna(-1).eq(program)
    name = names.loc[mine, "name"].dropna().astype(str)
    return rows[(keys[0] == capture) & (keys[1] == program)], name.iloc[0] if len(name) else ""


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n)


def _bits(kind: str) -> int:
    """Bits of one element: what the type's name says."""
    if kind in _BITS:
        return _BITS[kind]
    match = re.match(r"[a-z]+(\d+)", kind)
    return int(match[1]) if match else 0
