"""Boardfly, the network of TPU 8i: boards of 4 chips, groups of 8 boards, groups joined by optical circuit switches.

Published (through secondary copies): 4 chips in a ring on a board with 16 links to the outside; 8 boards fully
connected by copper, which takes 11 of those 16; 5 go to optics, 40 for a group; up to 36 groups, 1,152 chips, of which
1,024 are active; 7 hops at most. Which chip holds which port is not published. The port map below is ours: it meets
every published count, and a group has a diameter of 3, which about 1 in 100 random port maps reaches.
"""

from itertools import count, islice

import numpy as np

from simulators.topology.network import KIND_OF, Network, make

BOARD, BOARDS, PORTS = 4, 8, 40
GROUP = BOARD * BOARDS
MOST_GROUPS = PORTS + 1  # each group reaches each other one over a port of its own
FIRST_PORT = {1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 7: 2}  # offset between boards -> chip that holds the port
SECOND_PORT = {1: 2, 7: 3, 3: 2, 5: 3}  # the doubled pairs
OPTICAL_CHIP = (0, 1, 2, 3, 3)  # chips of a board that hold its five optical ports
INFERRED = (
    "Boardfly's counts are published through secondary copies; which chip holds which port is not: this port map is "
    "inferred. It meets every published count, and other maps that do would differ in the second digit of mean hops.",
    "How many chips of a Boardfly share a host is not published: hosts are inferred, one for each board of 4 chips.",
)


def build(
    spec: str,
    groups: int,
    spare_ports: bool = True,
    chip: str | None = "TPU 8i",
    oneway_bytes_per_s: float | None = None,
) -> Network:
    """A Boardfly of so many whole groups. `spare_ports`: ports that no group needs go to near groups (inferred)."""
    chips = groups * GROUP
    at = np.arange(chips)
    ring = np.stack([at, at - at % BOARD + (at + 1) % BOARD], axis=1)
    one = np.array(sorted(_copper()))
    copper = (one[None] + GROUP * np.arange(groups)[:, None, None]).reshape(-1, 2)
    optical = np.array(_optical(groups, spare_ports), np.int64).reshape(-1, 2)
    sizes = {"board": len(ring), "copper": len(copper), "ocs": len(optical)}
    rates = {} if oneway_bytes_per_s is None else dict.fromkeys(sizes, oneway_bytes_per_s)
    parts = {"board": at // BOARD, "group": at // GROUP, "host": at // BOARD}
    return make(
        spec=spec,
        kind="boardfly",
        chip=chip,
        chips=chips,
        links=np.concatenate([ring, copper, optical]),
        link_kind=np.repeat([KIND_OF[k] for k in sizes], list(sizes.values())),
        coordinates=np.stack([at // GROUP, at // BOARD % BOARDS, at % BOARD], axis=1),
        axes=("group", "board", "chip"),
        parts={k: v.astype(np.int32) for k, v in parts.items()},
        oneway_bytes_per_s=rates,
        inferred=INFERRED,
    )


def _copper() -> set[tuple[int, int]]:
    """The copper links of group 0: 28 pairs of boards, 16 of them doubled."""
    found = set()
    for ports in (FIRST_PORT, SECOND_PORT):
        for offset, port in ports.items():
            for a in range(BOARDS):
                ends = (a * BOARD + port, (a + offset) % BOARDS * BOARD + ports[BOARDS - offset])
                found.add((min(ends), max(ends)))
    return found


def _optical(groups: int, spare_ports: bool) -> list[tuple[int, int]]:
    """One link for each pair of groups by port (j - i) mod G - 1; then spare ports, to groups 1, 2, ... further."""
    links = [
        (_port_chip(i, j - i - 1), _port_chip(j, (i - j) % groups - 1))
        for i in range(groups)
        for j in range(i + 1, groups)
    ]
    if not spare_ports or groups < 2:
        return links
    free = PORTS - (groups - 1)
    ports = count(groups - 1)
    away = (d for d in count(1) if d % groups)  # once around, the nearest groups get a further link
    for distance in islice(away, free // 2):
        there, back = next(ports), next(ports)
        links += [(_port_chip(i, there), _port_chip((i + distance) % groups, back)) for i in range(groups)]
    if free % 2 and groups % 2 == 0:
        port = next(ports)
        links += [(_port_chip(i, port), _port_chip(i + groups // 2, port)) for i in range(groups // 2)]
    return links


def _port_chip(group: int, port: int) -> int:
    """The chip that holds an optical port of a group."""
    return group * GROUP + port // 5 * BOARD + OPTICAL_CHIP[port % 5]
