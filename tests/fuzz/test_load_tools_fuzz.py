"""Whatever bytes the readers of load tools meet, they hand back rows of their tables or say what is wrong."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.serving import (
    aiperf,
    guidellm,
    inference_perf,
    jetstream,
    llm_d,
    llmperf,
    maxtext_inference,
    mlperf_inference,
)
from tests.collectors import test_aiperf as aiperf_test
from tests.collectors import test_guidellm as guidellm_test
from tests.collectors import test_inference_perf as inference_perf_test
from tests.collectors import test_jetstream as jetstream_test
from tests.collectors import test_llm_d as llm_d_test
from tests.collectors import test_llmperf as llmperf_test
from tests.collectors import test_maxtext_inference as maxtext_test
from tests.collectors import test_mlperf_inference as mlperf_test
from tests.fuzz.damage import checks_of, survive

NAME = "stage_0_lifecycle_metrics.json"
VALID = {
    aiperf: [
        "".join(json.dumps(aiperf_test.record()) + "\n" for _ in range(2)).encode(),
        json.dumps(aiperf_test.SUMMARY).encode(),
        json.dumps(
            {
                "experiments": [
                    {
                        "experiment": {"mode": "concurrency", "value": 1},
                        "requests": [
                            {
                                "timestamp": 1,
                                "response_timestamps": [3, 5],
                                "response_outputs": [aiperf_test.chat(content="a"), {}],
                            },
                        ],
                    }
                ]
            }
        ).encode(),
    ],
    guidellm: [json.dumps({"benchmarks": [guidellm_test.benchmark()]}).encode()],
    inference_perf: [
        json.dumps(inference_perf_test.stage()).encode(),
        json.dumps(inference_perf_test.server(), indent=1).encode(),
        json.dumps([inference_perf_test.OLD, inference_perf_test.NEW, inference_perf_test.WRONG]).encode(),
        b"load_summary: {count: 2}\nsuccesses:\n  count: 2\n  latency:\n    time_to_first_token: {mean: 0.25}\n",
    ],
    jetstream: [json.dumps(jetstream_test.RESULT).encode(), jetstream_test.PRINTED.encode()],
    llm_d: [llm_d_test.NEWER.encode(), json.dumps(llm_d_test.OLDER).encode()],
    llmperf: [
        json.dumps([llmperf_test.response(), llmperf_test.response(error_code=1)], indent=4).encode(),
        json.dumps(llmperf_test.SUMMARY).encode(),
    ],
    maxtext_inference: [json.dumps(maxtext_test.RESULT).encode()],
    mlperf_inference: [mlperf_test.summary(**mlperf_test.SERVER).encode(), mlperf_test.DETAIL.encode()],
}
READERS = pytest.mark.parametrize("reader", VALID, ids=lambda reader: reader.NAME)
NOISE = (
    b"a: " * 10_000,
    b"- " * 10_000,
    b"= MLPerf Results Summary\n" + b" " * 100_000 + b"\na" + b" " * 100_000 + b"\na: b" + b" " * 100_000 + b"c",
)
test_the_undamaged_originals_are_known_and_read, test_damage, test_noise, test_every_cut = checks_of(
    VALID, NAME, NOISE, cuts=100, noises=60, facts_alone=(mlperf_inference,)
)


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@READERS
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_any_part_may_have_any_shape(reader, data, tmp_path_factory):
    """One part of a well-formed document, anywhere in it, is replaced by something of another shape."""
    originals = [original for original in VALID[reader] if original[:1] in b"{["]
    document = json.loads(data.draw(st.sampled_from(originals)).split(b"\n{")[0]) if originals else None
    at = document
    while isinstance(at, dict | list) and at:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.integers(0, 3)) == 0:
            at[key] = data.draw(SHAPES)
            break
        at = at[key]
    survive(reader, tmp_path_factory.getbasetemp(), json.dumps(document).encode(), NAME)
