"""The roofline's page of a run that tells what chips did, and of no operation."""

import json

from collectors.ingest import ingest
from tests.app.test_pages import opened, words
from tests.collectors.test_cloud_monitoring import two_hosts


def test_the_page_tells_what_the_hardware_counted_and_draws_nothing(place, tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text(json.dumps({"timeSeries": two_hosts(("node-a",), 2)}))
    at = opened("questions/roofline/page.py", run=ingest([path], place.store).run_id)
    assert not at.exception
    assert "By their own counters 2 TPUs were in use" in words(at)
    assert [metric.label[:-2] for metric in at.metric] == ["Peak", "Memory bandwidth"]
    assert not at.get("plotly_chart")
