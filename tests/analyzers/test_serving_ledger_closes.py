"""The ledger of a serving run closes, and no account is negative, whatever the record holds."""

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from errors import QuestionError
from tests.analyzers.test_serving_ledger import T0, S, ask

counts = st.integers(0, 500)


@example(  # failed tokens are the whole of a pass, to a rounding
    passes=[(0, 0, 0, 0, 0, 0, 0, 0, 0), (0, 1, 1, 0, 0, 1, 0, 0, 0)],
    asked=[
        (0, 0, 0, 0, 0, "completed"),
        (0, 0, 0, 0, 0, "completed"),
        (0, 0, 0, 0, 107, "failed"),
        (0, 0, 0, 0, 1, "failed"),
        (0, 0, 0, 0, 0, "failed"),
        (0, 0, 0, 0, 0, "failed"),
        (0, 500_000_001, 1_286_662_083, 0, 1, "completed"),
    ],
    chips=1,
    named="llama3.1-8b",
    ttft_s=0.5,
)
@settings(max_examples=75, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 5 * S),
            st.integers(-5, 2 * S),
            st.integers(-5, 3 * S),
            counts,
            counts,
            counts,
            counts,
            counts,
            counts,
        ),
        max_size=50,
    ),
    st.lists(
        st.tuples(
            st.integers(0, 5 * S),
            st.integers(-S, 5 * S),
            st.integers(-S, 5 * S),
            counts,
            counts,
            st.sampled_from(["completed", "failed", "aborted"]),
        ),
        max_size=8,
    ),
    st.integers(1, 9),
    st.sampled_from([None, "llama3.1-8b"]),
    st.sampled_from([None, 0.5]),
)
def test_it_closes_whatever_the_record_holds(passes, asked, chips, named, ttft_s):
    columns = (
        "start_ns",
        "dur_ns",
        "device_ns",
        "prefill_tokens",
        "recomputed_tokens",
        "decode_tokens",
        "drafted_tokens",
        "accepted_tokens",
        "padded_tokens",
    )
    rows = dict(zip(columns, map(list, zip(*passes, strict=True)), strict=True)) if passes else {}
    if rows:
        rows["start_ns"] = [T0 + x for x in rows["start_ns"]]
    requests = {
        "id": [str(i) for i in range(len(asked))],
        "arrival_ns": [T0 + a[0] for a in asked],
        "first_token_ns": [T0 + a[0] + a[1] for a in asked],
        "last_token_ns": [T0 + a[0] + a[2] for a in asked],
        "prompt_tokens": [a[3] for a in asked],
        "output_tokens": [a[4] for a in asked],
        "status": [a[5] for a in asked],
    }
    facts = {"chips": chips, "peak_flops_per_s": 1e12} | ({"model": named} if named else {})
    try:
        got = ask({"iterations": rows, "requests": requests}, facts, **({"ttft_s": ttft_s} if ttft_s else {})).ledger
    except QuestionError:
        return
    leaves = [a.chip_seconds for _, a in got.account.walk() if not a.children]
    assert math.fsum(leaves) == pytest.approx(got.chip_seconds, rel=1e-9)
    assert min(leaves) >= 0
