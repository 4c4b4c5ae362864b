"""A profile that stands in several parts of a file, one after the other, as continuous profiling writes it."""

from collections.abc import Iterable

from collectors.device.xplane.planes import PlaneIndex

TEN_DAYS_NS = (
    864_000_000_000_000  # no capture lasts as long: times that lie further apart are of another clock, or damaged
)


def alike(planes: list[PlaneIndex]) -> list[list[PlaneIndex]]:
    """Planes with the later pieces of each behind its first. Planes of one name in one part of the file are several."""
    seen: dict[tuple[int, str], int] = {}
    groups: dict[tuple[str, int], list[PlaneIndex]] = {}
    for plane in planes:
        which = seen[plane.part, plane.name] = seen.get((plane.part, plane.name), -1) + 1
        groups.setdefault((plane.name, which), []).append(plane)
    return list(groups.values())


def near(times: Iterable[int]) -> list[int]:
    """The times that parts of a file tell, less those that are damaged: far from the one in the middle."""
    told = sorted(times)
    return [t for t in told if abs(t - told[len(told) // 2]) < TEN_DAYS_NS]
