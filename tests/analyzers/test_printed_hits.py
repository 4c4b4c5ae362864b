"""The hit rate of whole logs, of several servers of which not all tell their prompts."""

import pandas as pd
import pytest

from analyzers.serving.printed_hits import overall


def rows(replica: str, rate: float, prompt: float | None, n: int = 3) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "replica": [replica] * n,
            "t_s": range(n),
            "hit_rate": [rate] * n,
            "prompt": pd.array([prompt] * n, dtype="Float64"),
        }
    )


def test_a_server_whose_prompts_are_not_told_counts_like_the_others():
    assert overall(pd.concat([rows("a", 0.2, 100.0), rows("b", 0.8, None)])) == pytest.approx(0.5)
    assert overall(rows("b", 0.8, None)) == pytest.approx(0.8)
    weighed = pd.concat([rows("a", 0.2, 300.0), rows("b", 0.8, 100.0), rows("c", 0.0, 0.0)])
    assert overall(weighed) == pytest.approx(0.35)
    assert overall(rows("c", 0.4, 0.0)) == pytest.approx(0.4)
