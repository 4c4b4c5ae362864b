"""What is told of the chip that a person named while files become a run."""

import pytest

from collectors.ingest import ingest
from runs.store import Store
from tests.collectors.ingesting import LOG


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("v5P", ""),
        ("H100SXM", ""),
        ("tpu-v6", "Did you mean TPU v6e or"),
        ("v5pp", "Did you mean TPU v5p"),
        ("<b>none</b>", "no chip is called '<b>none</b>': its peak is not known"),
    ],
)
def test_a_chip_that_no_catalogue_has_is_told_with_the_nearest(tmp_path, said, told):
    (tmp_path / "train.log").write_text(LOG)
    done = ingest([tmp_path / "train.log"], Store(tmp_path / "store"), chip=said)
    assert [w for w in done.warnings if w.startswith("chip:")] == [w for w in done.warnings if told and told in w]
    assert bool(told) == bool(done.warnings)


def test_a_chip_of_ones_own_whose_peak_is_said_is_no_stranger(tmp_path):
    (tmp_path / "train.log").write_text(LOG)
    (tmp_path / "chipledger.json").write_text('{"chip": "ours", "peak_flops_per_s": 1e15}')
    assert ingest([tmp_path / "train.log", tmp_path / "chipledger.json"], Store(tmp_path / "store")).warnings == []
