"""Logs of no format: which are taken for one, and the lines of them that tell why."""

import gzip

import pytest

from collectors import COLLECTORS
from collectors.ingest import ingest
from collectors.training import job_log
from errors import InputError
from runs.store import Store
from runs.tables import frame
from tests.collectors.reading import read, source_of

DMESG = (
    "[    0.000000] Linux version 6.1.0\n[   12.345678] nvidia: loading out-of-tree module\n"
    "[ 9123.456789] NVRM: Xid (PCI:0000:c6:00): 79, pid=7, name=python, GPU has fallen off the bus.\n"
)
DATED_DMESG = (
    "[Wed Mar  4 05:05:00 2026] nvidia: loading out-of-tree module\n"
    "[Wed Mar  4 05:06:07 2026] NVRM: Xid (PCI:0000:c6:00): 79, pid=7, name=python, GPU has fallen off the bus.\n"
)
JOURNAL = (
    "2026-03-04T05:06:07+0000 gke-a3-17 systemd[1]: Started job.\n"
    "2026-03-04T05:16:07+0000 gke-a3-17 kernel: Out of memory: Killed process 4711 (python3) total-vm:5kB\n"
)
EVENTS = (
    "LAST SEEN   TYPE      REASON         OBJECT             MESSAGE\n"
    "12m         Normal    Scheduled      pod/w-3            Successfully assigned default/w-3\n"
    "10m         Warning   NodeNotReady   node/gke-a3-17     Node is not ready\n"
)
SLURM = "+ srun python x.py\nloading data\nslurmstepd: error: *** JOB 7 ON n12 CANCELLED AT 2026-03-04T05:06:07 ***\n"
TRACE = "step one\nTraceback (most recent call last):\n  File 'x.py', line 3\nRuntimeError: shape mismatch\n"
STEPS = "completed step: 1, seconds: 2.000, loss: 1.500\ncompleted step: 2, seconds: 2.000, loss: 1.400\n"


def log(folder, text, name="job.log"):
    return read(job_log, source_of(folder, text, name))


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        (DMESG, "dmesg.txt", [("accelerator", None)]),
        (JOURNAL, "journal.log", [("host_out_of_memory", "gke-a3-17")]),
        (EVENTS, "events.txt", [("host", "gke-a3-17")]),
        (SLURM, "slurm-7.out", [("user", "n12")]),
        (SLURM.replace(" ***\n", " DUE TO TIME LIMIT ***\n"), "slurm-7.out", [("time_limit", "n12")]),
        (DATED_DMESG, "boot.txt", [("accelerator", None)]),
        (TRACE, "worker.err", [("process_exit", None), ("software", None)]),
    ],
)
def test_what_kernels_schedulers_and_programs_say(tmp_path, text, name, told):
    source = source_of(tmp_path, text, name)
    assert job_log.sniff(source) == 0.5
    got = read(job_log, source)
    assert [(r["cause"], r["host"]) for r in got.rows["evidence"]] == told
    assert got.rows.keys() == {"evidence"} and got.facts == {}
    assert set(got.column("evidence", "attempt")) == {None}


def test_the_times_of_a_journal(tmp_path):
    assert log(tmp_path, JOURNAL).column("evidence", "ts_ns") == [1772601367 * 10**9]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("# A project\n\nIt fails with `CUDA out of memory`.\n", "README.md"),
        ("# A project\n\nError handling is described here.\n", "README.txt"),
        ("import os\n\n\ndef main():\n    raise RuntimeError('x')\n", "train.py"),
        ("import os\nimport sys\n" * 40 + TRACE, "train.log"),
        ("numpy==1.26\npandas==2.2\n", "requirements.txt"),
        ('{"a": 1}\n' + DMESG, "x.log"),
        ('[{"a": 1}]', "x.log"),
        ("<html>ERROR</html>", "x.log"),
        ("Apache License\nVersion 2.0\n", "LICENSE.txt"),
        (DMESG, "kernel.bin"),
        ("# Logging\n\nWhat to do about `CUDA out of memory`\n", "docs/events.md"),
        (DMESG, "notes"),
        ("\0" + DMESG, "dmesg.log"),
        ("just some words\n" * 30, "words.log"),
        ("", "empty.log"),
    ],
)
def test_what_is_no_log(tmp_path, text, name):
    assert job_log.sniff(source_of(tmp_path, text, name)) == 0


def test_a_log_whose_end_reads_like_one(tmp_path):
    text = "some banner\n" * 20_000 + JOURNAL * 500
    assert job_log.sniff(source_of(tmp_path, text, "out.txt")) == 0.5


def test_a_log_that_begins_with_dicts_of_python_is_no_json(tmp_path):
    steps = "".join(f"{{'loss': {9 - n / 100:.4f}, 'grad_norm': 1.25, 'epoch': {n / 100:.2f}}}\n" for n in range(40))
    out = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    assert log(tmp_path, steps + out, "slurm-7.out").column("evidence", "cause") == ["device_memory"]
    lost = "{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.41}\n{'loss': nan, 'epoch': 0.42}\n"
    assert log(tmp_path, steps + lost, "slurm-7.out").column("evidence", "cause") == ["numerics", "numerics"]
    path = tmp_path / "train.log"
    path.write_text(steps)
    with pytest.raises(InputError, match="no line in it tells of a failure"):
        ingest([path], Store(tmp_path / "store"))


def test_every_real_format_goes_before_it(tmp_path):
    source = source_of(tmp_path, "2026-03-04 05:06:07 INFO start\n" + STEPS + JOURNAL, "train.log")
    scores = {c.NAME: c.sniff(source) for c in COLLECTORS}
    assert scores["job_log"] == 0.5 < scores["maxtext"]


def test_a_log_that_tells_nothing_is_named(tmp_path):
    with pytest.raises(InputError, match="no line in it tells of a failure"):
        log(tmp_path, "2026-03-04 05:06:07 INFO all is well\n")


def test_beside_other_files_it_adds_evidence_or_a_warning(tmp_path):
    store, folder = Store(tmp_path / "store"), tmp_path / "in"
    folder.mkdir()
    (folder / "train.log").write_text(STEPS)
    (folder / "dmesg.txt.gz").write_bytes(gzip.compress(DMESG.encode()))
    (folder / "well.log").write_text("2026-03-04 05:06:07 INFO all is well\n")
    (folder / "README.md").write_text("# CUDA out of memory\n")
    done = ingest([folder], store)
    assert done.tables == {"steps": 2, "evidence": 1}
    assert list(frame(store.get(done.run_id).tables, "evidence")["cause"]) == ["accelerator"]
    said = " ".join(done.warnings)
    assert "well.log: no line in it tells of a failure" in said and "README.md: not recognised, passed over." in said


def test_alone_a_log_that_tells_nothing_is_an_error(tmp_path):
    path = tmp_path / "well.log"
    path.write_text("2026-03-04 05:06:07 INFO all is well\n")
    with pytest.raises(InputError, match="no line in it tells of a failure"):
        ingest([path], Store(tmp_path / "store"))


def test_alone_a_log_that_tells_something_is_a_run(tmp_path):
    path = tmp_path / "slurm-7.out"
    path.write_text(SLURM)
    assert ingest([path], Store(tmp_path / "store")).tables == {"evidence": 1}


def test_dates_of_dmesg_have_a_year(tmp_path):
    assert log(tmp_path, DATED_DMESG, "boot.txt").column("evidence", "ts_ns") == [1_772_600_767 * 10**9]
