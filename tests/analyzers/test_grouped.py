"""Rows looked up by the values of columns are those that a comparison of each row finds, in their order."""

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from analyzers.grouped import Grouped

ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([0, 1, 2, None]), st.integers(0, 9)))


def framed(rows, categorical):
    made = pd.DataFrame(rows, columns=["host", "device", "n"]).astype({"device": "Int32"})
    return made.astype({"host": "category"}) if categorical else made


@given(ROWS, st.booleans())
def test_the_rows_are_those_of_a_comparison(rows, categorical):
    frame = framed(rows, categorical)
    pairs, hosts = Grouped(frame, "host", "device"), Grouped(frame, "host")
    for host in ("a", "b", "c"):
        same = (frame["host"] == host).fillna(False)
        assert hosts.of(host)["n"].tolist() == frame[same]["n"].tolist()
        for device in range(3):
            both = same & (frame["device"] == device).fillna(False)
            assert pairs.of(host, device)["n"].tolist() == frame[both]["n"].tolist()
    told = {(h, d) for h, d, _ in rows if h is not None and d is not None}
    assert set(pairs.keys) == told and set(hosts.keys) == {(h,) for h, _, _ in rows if h is not None}
