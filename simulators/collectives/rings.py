"""Collectives over axes of a mesh or torus: a ring where the axis wraps, a line where it does not.

`array_bytes` V is the whole array as it is spread over the chips of these axes, N of them; `lengths` X and `wraps`
describe the axes, of which those of one chip do nothing; `oneway_bytes_per_s` w is one link one way, and `hop_s` t the
time to cross one. Every result has a latency and a bandwidth term, both linear in their inputs:

    all-gather, reduce-scatter   latency t (sum of X/2 on rings, X - 1 on lines)
                                 bandwidth V / (2 w rings), all axes at once; V (N-1)/N / (w (2 rings + lines)) where
                                 there is a line: the chip at its end receives over one link of that axis
    all-reduce                   both of these: twice each term
    all-to-all                   (V/N^2) times the ordered pairs that the busiest link carries, by w: on one even ring
                                 a quarter of an all-gather; latency: the hops of the farthest pair
    permute                      each chip's V/N to the next along one axis; on a line the last sends back over all

Source: How to Scale Your Model (scaling book), "Sharded matrices"; the ring form drops (N-1)/N as it does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple


@dataclass(frozen=True)
class Time:
    """Seconds of a collective. `overlapped`: hops pass while bytes move, so that the longer term counts; else both."""

    latency_s: float
    bandwidth_s: float
    overlapped: bool = True

    @property
    def seconds(self) -> float:
        if self.overlapped:
            return max(self.latency_s, self.bandwidth_s)
        return self.latency_s + self.bandwidth_s

    def times(self, factor: float) -> "Time":
        """So many of it, one after another."""
        return Time(self.latency_s * factor, self.bandwidth_s * factor, self.overlapped)


class _Axes(NamedTuple):
    chips: int
    rings: int
    lines: int
    hops: int  # of the farthest pair


def all_gather(
    array_bytes: float, lengths: Sequence[int], wraps: Sequence[bool], oneway_bytes_per_s: float, hop_s: float
) -> Time:
    """Every chip ends with the whole array, of which each began with an equal part."""
    axes = _axes(lengths, wraps)
    if axes.chips == 1:
        return Time(0.0, 0.0)
    crossing = (axes.chips - 1) / axes.chips if axes.lines else 1.0
    rate = oneway_bytes_per_s * (2 * axes.rings + axes.lines)
    return Time(axes.hops * hop_s, array_bytes * crossing / rate)


reduce_scatter = all_gather  # the same bytes over the same links, the other way round


def all_reduce(
    array_bytes: float, lengths: Sequence[int], wraps: Sequence[bool], oneway_bytes_per_s: float, hop_s: float
) -> Time:
    """Every chip ends with the sum of as many arrays of V bytes: a reduce-scatter, then an all-gather."""
    return all_gather(array_bytes, lengths, wraps, oneway_bytes_per_s, hop_s).times(2)


def all_to_all(
    array_bytes: float, lengths: Sequence[int], wraps: Sequence[bool], oneway_bytes_per_s: float, hop_s: float
) -> Time:
    """Every chip sends V/N^2 to each other one. Over one axis the hops overlap; over several they come on top."""
    axes = _axes(lengths, wraps)
    busiest = max(axes.chips / k * _busiest(k, w) for k, w in zip(lengths, wraps, strict=True)) if lengths else 0
    seconds = array_bytes / axes.chips**2 * busiest / oneway_bytes_per_s
    return Time(axes.hops * hop_s, seconds, axes.rings + axes.lines <= 1)


def permute(
    array_bytes: float, lengths: Sequence[int], wraps: Sequence[bool], oneway_bytes_per_s: float, hop_s: float
) -> Time:
    """Every chip sends its V/N to the next along the first axis that has one, the last to the first."""
    axes = _axes(lengths, wraps)
    if axes.chips == 1:
        return Time(0.0, 0.0)
    k, wrapped = next((k, w) for k, w in zip(lengths, wraps, strict=True) if k > 1)
    return point_to_point(array_bytes / axes.chips, 1, 1 if wrapped else k - 1, oneway_bytes_per_s, hop_s)


def one_way_all_gather(array_bytes: float, length: int, oneway_bytes_per_s: float, hop_s: float) -> Time:
    """Around a ring in one direction only, as NCCL's rings run: X - 1 steps, each with one part of the array."""
    return Time((length - 1) * hop_s, array_bytes * (length - 1) / length / oneway_bytes_per_s)


def one_way_all_to_all(array_bytes: float, length: int, oneway_bytes_per_s: float, hop_s: float) -> Time:
    """Around a ring in one direction only: each link carries X (X-1)/2 pairs, so half of a one-way all-gather."""
    return Time((length - 1) * hop_s, array_bytes * (length - 1) / (2 * length) / oneway_bytes_per_s)


def point_to_point(message_bytes: float, ports: int, hops: int, oneway_bytes_per_s: float, hop_s: float) -> Time:
    """One message over all links that leave the sender, or arrive at the receiver, whichever are fewer."""
    return Time(hops * hop_s, message_bytes / (ports * oneway_bytes_per_s), False)


def least_message_bytes(oneway_bytes_per_s: float, hop_s: float) -> float:
    """A message that takes a link as long as the hop itself: what is smaller is bound by latency."""
    return oneway_bytes_per_s * hop_s


def crossover_bytes(one_byte: Time) -> float | None:
    """The array whose bandwidth term equals its latency. `one_byte`: of an array of 1 byte. None: nothing to move."""
    return one_byte.latency_s / one_byte.bandwidth_s if one_byte.bandwidth_s > 0 else None


def _axes(lengths: Sequence[int], wraps: Sequence[bool]) -> _Axes:
    used = [(k, w) for k, w in zip(lengths, wraps, strict=True) if k > 1]
    rings = sum(w for _, w in used)
    return _Axes(prod(k for k, _ in used), rings, len(used) - rings, sum(k // 2 if w else k - 1 for k, w in used))


def _busiest(length: int, wrapped: bool) -> float:
    """Ordered pairs of one axis that its busiest link carries one way, over shortest ways, ties split."""
    return length**2 // 4 / 2 if wrapped else length**2 // 4
