"""Damaged profiles in pieces, damaged pieces under right hashes, damaged traces for a viewer: kept or refused."""

from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.device import viewer, xplane
from tests.collectors.riegeli_files import continuous
from tests.collectors.test_riegeli import cut
from tests.collectors.test_viewer import made
from tests.collectors.viewer_files import as_json, viewer_events
from tests.fuzz.damage import checks_of, damaged, survive

PIECES = cut(made(), 3)
NAME = "host.xplane.riegeli"

undamaged, damage, other, cuts = checks_of({xplane: [continuous(PIECES, "none"), continuous(PIECES)]}, NAME, cuts=60)
test_pieces_undamaged, test_pieces_damaged, test_pieces_cut = undamaged, damage, cuts
test_json_undamaged, test_json_damaged, test_json_other, test_json_cut = checks_of(
    {viewer: [as_json(viewer_events(made()))]}, "host.trace.json", cuts=60
)


@settings(max_examples=60, deadline=None)
@given(pieces=st.lists(damaged(PIECES), min_size=1, max_size=4), codec=st.sampled_from(["none", "zstd"]))
def test_damaged_pieces_under_right_hashes(pieces, codec, tmp_path_factory):
    survive(xplane, tmp_path_factory.getbasetemp(), continuous(pieces, codec), NAME)


@settings(max_examples=40, deadline=None)
@given(order=st.permutations(range(3)), again=st.integers(0, 2))
def test_pieces_in_any_order(order, again, tmp_path_factory):
    survive(xplane, tmp_path_factory.getbasetemp(), continuous([PIECES[n] for n in (*order, again)], "none"), NAME)
