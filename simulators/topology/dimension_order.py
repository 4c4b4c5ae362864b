"""Dimension-order routing on whole tori and meshes: one axis after another, so that each axis is counted by itself."""

from math import prod

import numpy as np

from simulators.topology.lattice import Lattice


def dimension_order(lattice: Lattice, pairs: tuple[np.ndarray, np.ndarray] | None) -> tuple[np.ndarray, np.ndarray]:
    """(forward, backward) messages over each link, float64, in rows of `lattice.links()`. `pairs`: (sources,
    destinations); None where every chip sends to every other. Half of a tie on an even ring goes each way.
    """
    ends, axes, _ = lattice.links()
    loads = np.zeros((2, len(ends)))
    for axis, (k, wrapped) in enumerate(zip(lattice.dims, lattice.wraps, strict=True)):
        rows = np.flatnonzero(axes == axis)
        at = np.array(np.unravel_index(ends[rows, 0], lattice.dims))
        if pairs is None:
            a, b = (g.ravel() for g in np.meshgrid(np.arange(k), np.arange(k), indexing="ij"))
            one = _line(np.zeros_like(a), a, b, 1, k, wrapped) * (lattice.chips / k)
            loads[:, rows] = one[:, 0, at[axis]]
            continue
        source, to = (np.array(np.unravel_index(p, lattice.dims)) for p in pairs)
        elsewhere = np.concatenate([to[:axis], source[axis + 1 :]])  # axes before were walked, later ones not yet
        others = lattice.dims[:axis] + lattice.dims[axis + 1 :]
        one = _line(_line_of(elsewhere, others), source[axis], to[axis], prod(others), k, wrapped)
        loads[:, rows] = one[:, _line_of(np.delete(at, axis, axis=0), others), at[axis]]
    return loads[0], loads[1]


def _line_of(places: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """The line that each chip lies on, by its places (axes, chips) along the other axes; with no other there is one."""
    return np.asarray(np.ravel_multi_index(tuple(places), dims)) if dims else np.zeros(places.shape[1], int)


def _line(line: np.ndarray, a: np.ndarray, b: np.ndarray, lines: int, k: int, wrapped: bool) -> np.ndarray:
    """Messages over the link from place p to p + 1 of each line, up and down, float64 (2, lines, k)."""
    up = (b - a) % k if wrapped else np.maximum(b - a, 0)
    down = (a - b) % k if wrapped else np.maximum(a - b, 0)
    share = np.where(up < down, 1.0, 0.0) if wrapped else (up > 0).astype(float)
    share[(up == down) & (up > 0)] = 0.5
    steps = np.zeros((2, lines, 2 * k + 1))  # rings unrolled: a way that passes the end goes on behind it
    for way, first, length, part in ((0, a, up, share), (1, b, down, np.where(up + down > 0, 1.0 - share, 0.0))):
        np.add.at(steps[way], (line, first), part)
        np.add.at(steps[way], (line, first + length), -part)
    over = np.cumsum(steps, axis=2)
    return over[:, :, :k] + over[:, :, k : 2 * k]
