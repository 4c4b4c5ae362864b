"""The critical path against Holistic Trace Analysis on real PyTorch traces, where they lie beside us.

The two definitions are not the same, so what is compared is what both tell: which side a step hangs on.

* HTA walks from the end of the last event of one step, mostly the host's; here a path begins at what the device ran
  last, and where it is idle at the step's end, at what came next. So a step whose device still works when its host is
  done hangs on the device here, and on the host in HTA's telling.
* HTA takes the operators of all threads as one host; here a chain stays on the thread that made the call, and where two
  ranks met it goes on with the one that came last.
* HTA adds up operators that lie over one another on a path; here each nanosecond counts once.
"""

import json
from pathlib import Path

import pytest

from analyzers.device.critical_path import critical_path
from collectors.ingest import ingest
from errors.options import parse_options
from runs.store import Store

SHARED = Path(__file__).parents[2].parent / "shared"
TRACES, ORACLES = SHARED / "data" / "kineto", SHARED / "oracles" / "hta"
ON_DEVICES = ("computing", "communication", "communication_or_wait", "copies", "between_kernels")
BOUND = {  # trace: what most of a step hangs on by HTA
    "hta_sampled_2rank": "cpu_bound",
    "hta_df_index_resolver": "cpu_bound",
    "hta_amd_trace": "cpu_bound",
    "tracelens_h100_Qwen_Qwen1.5-0.5B-Chat_": "gpu_compute_bound",
}

pytestmark = pytest.mark.skipif(not ORACLES.is_dir(), reason="no traces and oracles of HTA beside the project")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("store"))

    def read(name: str):
        run = store.get(ingest([TRACES / name], store).run_id)
        return critical_path.analyze(run.tables, {}, parse_options(critical_path.OPTIONS, {}))

    return read


@pytest.mark.parametrize("name", sorted(BOUND))
def test_a_step_hangs_on_the_same_side(told, name):
    ranks = json.loads((ORACLES / name / "critical_path.json").read_text()).values()
    for rank in ranks:
        assert max(rank["bound_by_dur_us"], key=rank["bound_by_dur_us"].get) == BOUND[name]
    totals = told(name).totals
    on_devices = sum(totals[f"{kind}_share"] for kind in ON_DEVICES)
    assert (on_devices > 0.5) == (BOUND[name] == "gpu_compute_bound")


def test_what_hta_has_on_the_device_is_told_alike_where_the_device_holds_the_path(told):
    """One step whose kernels follow one another: HTA has 29.2 ms in kernels and 2.8 ms between them. It leaves out
    the 509 executions of which the trace holds no call; here these are on the path by the rule `ended_last`."""
    name = "tracelens_h100_Qwen_Qwen1.5-0.5B-Chat_"
    (rank,) = json.loads((ORACLES / name / "critical_path.json").read_text()).values()
    hta_us = rank["bound_by_dur_us"]["gpu_compute_bound"] + rank["bound_by_dur_us"]["gpu_kernel_kernel_overhead"]
    result = told(name)
    without_call = result.rules.set_index("rule")["path_s"]["ended_last"]
    mine_us = (sum(result.totals[f"{kind}_s"] for kind in ON_DEVICES) - without_call) * 1e6
    assert mine_us == pytest.approx(hta_us, rel=0.005)
