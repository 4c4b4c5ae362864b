"""The wiring of a Boardfly of any size meets every published count."""

import numpy as np
import pytest

from simulators.topology.network import KIND_OF
from simulators.topology.systems import boardfly


@pytest.mark.parametrize("groups", [*range(1, 18), 32, 33, 36, 41])
def test_every_port_is_wired_and_every_optical_link_leaves_its_group(groups):
    built = boardfly.build(f"boardfly:{32 * groups}", groups)
    of_kind = {kind: built.links[built.link_kind == KIND_OF[kind]] for kind in ("board", "copper", "ocs")}
    assert {kind: len(links) for kind, links in of_kind.items()} == {
        "board": 32 * groups,
        "copper": 44 * groups,
        "ocs": 20 * groups if groups > 1 else 0,
    }
    assert (np.diff(built.links, axis=1) != 0).all()
    group, board = built.parts["group"], built.parts["board"]
    assert (np.diff(board[of_kind["board"]], axis=1) == 0).all()
    assert (np.diff(board[of_kind["copper"]], axis=1) != 0).all()
    assert (np.diff(group[of_kind["copper"]], axis=1) == 0).all()
    assert (np.diff(group[of_kind["ocs"]], axis=1) != 0).all()
    ports = np.bincount(board[of_kind["ocs"]].ravel(), minlength=8 * groups)
    assert (ports == (5 if groups > 1 else 0)).all()
    assert set(built.degrees()) == ({6} if groups > 1 else {4, 5})


@pytest.mark.parametrize("groups", [2, 5, 32, 36])
def test_each_pair_of_groups_has_a_link(groups):
    built = boardfly.build("boardfly", groups, spare_ports=False)
    pairs = np.sort(built.parts["group"][built.links[built.link_kind == KIND_OF["ocs"]]], axis=1)
    assert len(pairs) == len(np.unique(pairs, axis=0)) == groups * (groups - 1) // 2
