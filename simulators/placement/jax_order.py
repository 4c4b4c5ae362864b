"""The order in which jax.experimental.mesh_utils lays a mesh over a slice, by the same rules.

Logical axes are served from the last (the one that talks most) to the first. Whole axes: of the sets of free physical
axes with the right product, the one with most axes, then the first. Where that fails and splitting is allowed, all is
laid anew: the most devices in whole physical axes, then the most whole axes, then the most in axes already begun, then
the greatest counts from the first axis on. Small slices have orders of their own, which walk a tray as a ring.

Facts of JAX 0.10; nothing here imports it. One quirk is kept: JAX overlooks the small factors of a number whose largest
prime is more than one above the root of what is left (10 = 5, 14 = 7, 28 = 7), so that some axes cannot be split.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import isqrt, prod

import numpy as np

Shares = tuple[tuple[int, ...], ...]
"""shares[logical][physical]: devices of a logical axis along a physical one; 1 where it holds none."""

BY_HOST = ("TPU v2", "TPU v3")
TRAY_2X2X2 = (0, 1, 3, 2, 6, 7, 5, 4)  # of devices counted with x fastest


def assign(dims: Sequence[int], mesh: Sequence[int], split: bool) -> Shares | None:
    """How JAX lays a mesh of these sizes; None where it cannot (without splitting: where no whole axes fit)."""
    found = _whole(dims, mesh)
    return _split(dims, mesh) if found is None and split else found


def order(dims: Sequence[int], shares: Shares, nesting: Sequence[Sequence[int]] | None = None) -> np.ndarray:
    """Devices, numbered with the last physical axis fastest, in the shape of the mesh.

    `nesting`: for each physical axis the logical ones on it, outermost first; JAX puts later ones inside.
    """
    logical, physical = len(shares), len(dims)
    nests = nesting or [range(logical)] * physical
    cut = [(p, q) for p in range(physical) for q in nests[p]]
    at = np.arange(prod(dims)).reshape([shares[q][p] for p, q in cut])
    turned = sorted(range(len(cut)), key=lambda i: (cut[i][1], cut[i][0]))
    return at.transpose(turned).reshape([prod(s) for s in shares])


def tray(kind: str, dims: Sequence[int], mesh: Sequence[int]) -> np.ndarray | None:
    """The order of a small slice that JAX walks as a ring, and of any v2 or v3, host by host; else None.

    `kind`: as JAX names the device.

    `dims` with the cores of a chip last where they are devices of their own.
    """
    devices, shape = prod(dims), tuple(dims)
    if kind in BY_HOST:
        x, y, cores = shape
        at = np.arange(devices).reshape(x // 2, 2, y // 2, 2, cores).transpose(2, 0, 3, 1, 4).reshape(-1)
        ring = devices == 8 or mesh[-1] == 8
        return (at.reshape(-1, 8)[:, _with_cores(comb(2, 2))] if ring else at).reshape(mesh)
    if kind in ("TPU7x", "TPU7"):
        if devices % 8 or devices > 32 or max(shape[:2]) > 2:
            return None
        at = np.arange(devices).reshape(shape).transpose(2, 1, 0, 3).reshape(-1, 8)
        return at[:, _with_cores(comb(2, 2))].reshape(mesh)
    x_fastest = np.arange(devices).reshape(shape).T.reshape(-1)
    if kind == "TPU v5p":
        return x_fastest[list(TRAY_2X2X2)].reshape(mesh) if shape == (2, 2, 2) else None
    if kind not in ("TPU v5 lite", "TPU v6 lite"):
        return None
    flat = shape[:2] if prod(shape[2:]) == 1 else ()
    if flat == (2, 2):
        return x_fastest[comb(2, 2)].reshape(mesh)
    if devices == 8:
        return x_fastest[comb(2, 4)].reshape(mesh)
    if flat == (4, 4) and max(mesh) == devices:
        return x_fastest[comb(4, 4)].reshape(mesh)
    return None


def comb(rows: int, columns: int) -> list[int]:
    """A closed walk through a grid numbered row by row: along row 0, to and fro through the others, back by column 0.

    Every step goes to a neighbour where the rows are even in number.
    """
    walk = list(range(columns))
    for row in range(1, rows):
        inner = range(columns - 1, 0, -1) if row % 2 else range(1, columns)
        walk += [row * columns + c for c in inner]
    return walk + [row * columns for row in range(rows - 1, 0, -1)]


def _with_cores(chips: list[int]) -> list[int]:
    return [2 * c + core for c in chips for core in (0, 1)]


def _whole(dims: Sequence[int], mesh: Sequence[int]) -> Shares | None:
    free = list(dims)
    held: list[tuple[int, ...]] = [()] * len(mesh)
    for logical in reversed(range(len(mesh))):
        fitting = (
            s
            for n in range(len(dims), 0, -1)
            for s in combinations(range(len(dims)), n)
            if prod(free[i] for i in s) == mesh[logical]
        )
        held[logical] = next(fitting, ())
        if not held[logical] and mesh[logical] > 1:
            return None
        for i in held[logical]:
            free[i] = 0  # taken
    return tuple(tuple(dims[p] if p in axes else 1 for p in range(len(dims))) for axes in held)


def _split(dims: Sequence[int], mesh: Sequence[int]) -> Shares | None:
    used = [1] * len(dims)
    found: list[tuple[int, ...]] = [()] * len(mesh)
    for logical in reversed(range(len(mesh))):
        size = mesh[logical]
        seen = [prod(_factors(k // u)) for k, u in zip(dims, used, strict=True)]
        ways = [w for w in parts(size, seen)] if prod(_factors(size)) == size else []
        if not ways:
            return None
        found[logical] = max(ways, key=lambda w: _preference(w, dims, used))
        used = [u * n for u, n in zip(used, found[logical], strict=True)]
    return tuple(found)


def _preference(ways: tuple[int, ...], dims: Sequence[int], used: Sequence[int]) -> tuple:
    whole = [n for n, k in zip(ways, dims, strict=True) if n == k]
    begun = prod(n for n, u in zip(ways, used, strict=True) if u > 1)
    return prod(whole), sum(n > 1 for n in whole), begun, ways


def parts(size: int, room: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All ways to write `size` as a product of one divisor of each of `room`."""
    if not room:
        if size == 1:
            yield ()
        return
    for n in range(1, min(size, room[0]) + 1):
        if size % n == 0 and room[0] % n == 0:
            for rest in parts(size // n, room[1:]):
                yield (n, *rest)


def _factors(number: int) -> list[int]:
    """Prime factors as JAX finds them: see the quirk above."""
    found, left = [], number
    for p in range(2, isqrt(number) + 2):
        while left % p == 0:
            found.append(p)
            left //= p
        if left == 1:
            return found
    return [left] if left > 1 else []
