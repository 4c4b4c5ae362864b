"""Real scrapes of NVIDIA's DCGM exporter, and numbers that were read from them independently."""

import json
from pathlib import Path

import pytest

from collectors import COLLECTORS
from collectors.base import Source
from collectors.device import dcgm
from collectors.device.dcgm_rows import FIELDS
from tests.collectors.reading import read

SHARED = Path(__file__).parents[2].parent / "shared"
ORACLE = SHARED / "oracles" / "more" / "dcgm.json"
NAMED = {  # field of the oracle: the scalar, and how many of it the field's one is
    "DCGM_FI_DEV_POWER_USAGE": ("power", 1),
    "DCGM_FI_DEV_GPU_UTIL": ("time with any kernel running", 1),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("graphics engine active", 100),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor pipe active", 100),
}
pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason="no scrapes of DCGM beside the project")


def test_every_sample_of_every_scrape():
    for name, told in json.loads(ORACLE.read_text()).items():
        source = Source(SHARED / "data" / "more" / name, name)
        scores = {c.NAME: c.sniff(source) for c in COLLECTORS}
        assert max(scores, key=lambda n: scores[n]) == "dcgm"
        got = read(dcgm, source)
        rows = got.rows["scalars"]
        no_sensor = sum("MEMORY_TEMP" in field for field in told["names"]) * told["samples"] // len(told["names"])
        assert len(rows) == told["samples"] - no_sensor
        assert f"({no_sensor})" in got.reasons()
        assert len({(r["host"], r["device"]) for r in got.rows["memory"]}) == told["gpus"]
        for field, values in told["v"].items():
            if field == "DCGM_FI_DEV_FB_USED":
                used = [r["bytes"] for r in got.rows["memory"] if r["kind"] == "bytes_in_use"]
                assert used == [value * 2**20 for value in values]
                continue
            counter, scale = NAMED[field]
            mine = [r["value"] for r in rows if r["name"].startswith(f"GPU 0 {counter}{{")]
            assert mine == [pytest.approx(value * scale) for value in values]
        known = {f"DCGM_FI_{field}" for field in FIELDS}
        bare = {r["name"].partition("{")[0].removeprefix("GPU 0 ") for r in rows}
        assert {n.removeprefix("DCGM_FI_") for n in told["names"]} - bare <= {n.removeprefix("DCGM_FI_") for n in known}
        assert got.facts.get("chip") == (None if "vgpu" in name else rows and got.facts["chip"])
