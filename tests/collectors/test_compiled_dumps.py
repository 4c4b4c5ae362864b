"""Folders that XLA dumped programs into: each program counts once, however many files tell of it."""

import pytest

from collectors import ingest
from collectors.ingesting.dumps import program_of, rank, reason
from runs.store import Store
from runs.tables import frame
from tests.collectors import compiled_files as files
from tests.collectors.traces import hlo_proto

TEXT = b"HloModule jit_step\n\nENTRY main {\n  ROOT x = f32[8] parameter(0)\n}\n"
STEP = "module_0006.jit_step"


def dumped(folder, *names):
    """Dumps of programs that differ in nothing but bytes that no reader knows."""
    folder.mkdir(exist_ok=True)
    for n, name in enumerate(names):
        proto = hlo_proto(files.program()) + bytes([0xF8, 0x7F, n])
        (folder / name).write_bytes(TEXT + b"\n" * n if name.endswith(".txt") else proto)


def test_of_a_program_its_last_stage_is_read_and_of_that_the_proto(tmp_path):
    folder = tmp_path / "dump"
    stages = ("before_optimizations", "sm_9.0_gpu_after_optimizations")
    dumped(folder, *(f"{STEP}.{stage}{form}" for stage in stages for form in (".hlo.pb", ".txt")))
    store = Store(tmp_path / "store")
    done = ingest.ingest([folder], store)
    assert done.tables["modules"] == 1
    assert sorted(w.partition(": ")[2] for w in done.warnings if "left out" in w) == [
        "a program as text, left out: its proto lies beside it",
        "an earlier stage of a program, left out: a later one lies beside it",
        "an earlier stage of a program, left out: a later one lies beside it",
    ]
    alone = tmp_path / "alone"
    dumped(alone, f"{STEP}.sm_9.0_gpu_after_optimizations.hlo.pb")
    one = ingest.ingest([alone], store)
    flops = [frame(store.get(d.run_id).tables, "modules", ["flops"])["flops"].sum() for d in (done, one)]
    assert flops[0] == flops[1] > 0


def test_programs_of_other_numbers_names_and_folders_are_others(tmp_path):
    for folder in ("a", "b"):
        dumped(
            tmp_path / folder,
            f"{STEP}.before_optimizations.hlo.pb",
            "module_0007.jit_step.cpu_after_optimizations.hlo.pb",
            "module_0006.jit_loss.cpu_after_optimizations.hlo.pb",
            "step.hlo.pb",
        )
    (tmp_path / "b" / "step.hlo.pb").unlink()
    for n, file in enumerate(sorted((tmp_path / "b").iterdir())):
        file.write_bytes(hlo_proto(files.program()) + bytes([0xF8, 0x7F, 64 + n]))
    done = ingest.ingest([tmp_path / "a", tmp_path / "b"], Store(tmp_path / "store"))
    assert done.tables["modules"] == 7 and not any("left out" in w for w in done.warnings)


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (f"{STEP}.before_optimizations.hlo.pb", f"{STEP}.cpu_after_optimizations.txt.gz"),
        (f"{STEP}.0042.fusion.after_cse.before_dce.txt", f"{STEP}.gpu_after_optimizations.txt"),
        (f"{STEP}.before_optimizations.txt", f"{STEP}.0042.fusion.after_cse.before_dce.txt"),
        (f"{STEP}.gpu_after_optimizations.txt", f"{STEP}.gpu_after_optimizations.hlo_module.pb"),
    ],
)
def test_which_dump_is_nearest_to_what_runs(worse, better):
    assert program_of(worse) == program_of(better) == (".", STEP)
    assert rank(worse) < rank(better) and "left out" in reason(worse, better)


@pytest.mark.parametrize("name", ["jit_step.hlo.pb", "module_0006.jit_step.debug_options", "step.compiled.json"])
def test_other_files_are_no_dumps_of_stages(name):
    assert program_of(name) is None
