"""Rates that a framework prints for a device, on chips that show as one device and as two."""

import pytest

from analyzers.flops import mfu
from analyzers.time import ledger, steps
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables


def tables(of: str) -> MemoryTables:
    return MemoryTables(
        {
            "steps": {
                "step": list(range(20)),
                "dur_ns": [2_000_000_000] * 20,
                "order": list(range(20)),
                "source": ["log"] * 20,
                "format": [of] * 20,
                "model_flops_per_chip": [4e14] * 20,
                "tokens_per_s_per_chip": [1000.0] * 20,
            },
        }
    )


@pytest.mark.parametrize(
    ("chip", "of", "devices"),
    [
        ("7x", "maxtext", 2),
        ("7x", "maxtext_metrics", 2),
        ("v3", "tensorboard", 2),
        ("7x", "sidecar", 1),
        ("v5p", "maxtext", 1),
        ("v3", "maxtext", 2),
    ],
)
def test_what_is_printed_for_a_device_counts_for_all_devices_of_its_chip(chip, of, devices):
    facts = facts_of({"chip": chip, "chips": 4})
    roomy = {**facts, **facts_of({"peak_flops_per_s": 1e15})}  # 400 TFLOP/s are beyond a v3, and would be told to be
    told = steps.analyze(tables(of), roomy, {})
    assert told.tflops_per_s_per_chip == pytest.approx(200 * devices)
    assert told.tokens_per_s_per_chip == pytest.approx(1000 * devices)
    asked = mfu.analyze(tables(of), facts, parse_options(mfu.OPTIONS, {"convention": "job", "peak_flops_per_s": 1e15}))
    assert asked.mfu == pytest.approx(0.2 * devices)
    assert asked.printed.tokens_per_s == pytest.approx(1000 * devices)
    book = ledger.analyze(tables(of), roomy, {}).ledger
    assert book.useful_flops == pytest.approx(4 * 20 * 4e14 * devices)
