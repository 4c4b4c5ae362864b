"""The specification's own example of OTLP/JSON, and what it is known to hold."""

import json
from pathlib import Path

import pytest

from collectors.base import Source
from collectors.reading.textlog import Tally
from collectors.serving import otel_spans
from collectors.serving.span_files import SpanFile
from errors import InputError

SHARED = Path(__file__).parents[2].parent / "shared"
MORE, ORACLE = SHARED / "data" / "more", SHARED / "oracles" / "more" / "otlp.json"

pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason="no spans beside the project")


def test_a_span_that_is_no_request_is_known_and_refused():
    for name, told in json.loads(ORACLE.read_text()).items():
        source = Source(MORE / name, name)
        assert otel_spans.sniff(source) >= 0.9
        found = list(SpanFile(source, Tally(), frozenset(), lambda name, told: True).spans())
        ((server, span),) = found
        assert len(found) == told["spans"] and span.trace == told["traceId"]
        assert (span.start_ns, span.end_ns, span.error) == (told["start_ns"], told["end_ns"], None)
        assert (server.service, server.scope) == ("my.service", "my.library")
        with pytest.raises(InputError, match=r"1 span, none of a request \(\"I'm a server span\"\)"):
            list(otel_spans.read(source))
