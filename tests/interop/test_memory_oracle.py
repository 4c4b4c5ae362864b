"""The memory formulas against the published numbers of arXiv 2205.05198."""

import json
from pathlib import Path

import pytest

from catalog.training_memory import Sharding, interleave_factor, layer_activation_bytes, state_bytes

ORACLE = Path(__file__).resolve().parents[3] / "shared" / "oracles" / "training" / "memory_oracle.json"
ROWS = json.loads(ORACLE.read_text())["rows"] if ORACLE.exists() else []
GIB = 1 << 30
FORMULAS = {
    "act_none_GiB": ("none", False),
    "act_seq_GiB": ("none", True),
    "act_selective_GiB": ("selective", False),
    "act_seq_selective_GiB": ("selective", True),
    "act_full_GiB": ("full", False),
    "act_full_over_t_GiB": ("full", True),
}


@pytest.mark.skipif(not ROWS, reason="no memory oracle beside the project")
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["model"])
def test_formulas_give_the_printed_numbers(row):
    sharding = Sharding(tensor=row["t"], pipeline=row["p"], interleave=row["interleave"])
    factor = interleave_factor(row["p"], row["interleave"])
    for column, (remat, sequence_parallel) in FORMULAS.items():
        layer = layer_activation_bytes(
            s=row["s"], b=row["b"], h=row["h"], a=row["a"], t=row["t"], remat=remat, sequence_parallel=sequence_parallel
        )
        assert layer * row["L"] * factor / GIB == pytest.approx(row[column], rel=1e-12), column
    params = 12 * row["L"] * row["h"] ** 2
    assert sum(state_bytes(params, sharding).values()) / GIB == pytest.approx(row["param_opt_GiB_18B"], rel=1e-12)
