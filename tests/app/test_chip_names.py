"""A chip has one name wherever runs are listed, however it was called where each was added."""

from app.library.rows import library
from app.summary import chip_text, chips_text
from tests.app import made_runs

STEPS = {"steps": {"step": [0], "start_ns": [made_runs.START_NS], "dur_ns": [10**9]}}


def test_a_chip_has_one_name_in_lists_and_searches(place):
    for n, given in enumerate(("v5p", "TPU v5p", "my card", "h100")):
        made_runs.write(place.store, f"run {n}", STEPS, {"chip": given, "chips": 4})
    told = {r.manifest.name: chips_text(r) for r in place.store.runs()}
    assert told == {"run 0": "4 × TPU v5p", "run 1": "4 × TPU v5p", "run 2": "4 × my card", "run 3": "4 × H100 SXM"}
    for query in ("chip:v5p", 'chip:"TPU v5p"', "chip:tpu"):
        found = library(place, query)
        assert {row.name for row in found.rows} == {"run 0", "run 1"} and {r.chip for r in found.rows} == {"TPU v5p"}
    assert library(place).facets["chip"] == {"TPU v5p": 2, "my card": 1, "H100 SXM": 1}


def test_what_the_run_was_given_stays_in_it(place):
    run = made_runs.write(place.store, "run", STEPS, {"chip": "v5p"})
    assert run.manifest.fact("chip") == "v5p" and chip_text(run) == "TPU v5p"
    assert chip_text(made_runs.write(place.store, "none", STEPS, {})) is None
