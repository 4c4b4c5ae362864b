"""A real job's log carried over to the chips of another real job, which no share was fitted to."""

from pathlib import Path

import pytest

from app.whatif.training import TRAINING
from app.workspace import workspace
from collectors.ingest import ingest

LOGS = Path(__file__).parents[2].parent / "shared" / "data" / "logs" / "mlperf_training_v4.1" / "Google" / "results"
GPT3 = {  # folder: chip, chips, tokens of a step. A v5p is counted there by its two cores
    "cloud-tpu-trillium-1024-maxtext": ("v6e", 1024, 2048 * 2048),
    "cloud-tpu-v5p-12288-maxtext": ("v5p", 6144, 6144 * 2048),
}

pytestmark = pytest.mark.skipif(not LOGS.exists(), reason="no MLPerf logs beside the project")


def test_gpt3_from_1024_v6e_to_6144_v5p_and_back(tmp_path):
    """Six times the chips, of another kind, and three times the batch: what was measured there lies in the range that
    is told, and nearer than half of such changes."""
    place, runs = workspace(str(tmp_path / "store")), {}
    for folder, (chip, chips, _) in GPT3.items():
        log = LOGS / folder / "gpt3" / "result_0.txt"
        runs[folder] = ingest([log], place.store, name=folder, chip=chip, chips=chips).run_id
    asked = {
        start: TRAINING.answer(
            TRAINING.from_query(
                {"calibrate": runs[start], "on": chip, "chips": str(chips), "global_batch_tokens": str(tokens)}
            ),
            place,
        ).carried[1]
        for start, (chip, chips, tokens) in zip(GPT3, reversed(GPT3.values()), strict=True)
    }
    v6e, v5p = asked.values()
    for there, measured in ((v6e, v5p.step.before_s), (v5p, v6e.step.before_s)):
        assert there.differ == ("chip", "chips", "batch")
        low, high = there.band_s
        assert low < measured < high and abs(there.step.after_s / measured - 1) < there.error.median
        low, high = there.band_s
        assert low < measured < high
