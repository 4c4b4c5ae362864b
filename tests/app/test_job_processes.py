"""Processes of jobs that misbehave: each is ended, with all that it started, and why is said in a sentence."""

import asyncio
import dataclasses
import os
import time
from pathlib import Path

import pytest

from app.serve import job_process
from app.serve.bounds import Bounds, bounds
from app.serve.job_process import JobProcess, sentence
from app.serve.process_tree import seen

LIMITS = Bounds(wall_s=60, memory_bytes=1 << 30, cpu_s=60, file_bytes=1 << 20, processes=6)
FORKS = (
    "import os, time\nfor _ in range({}):\n    if os.fork() == 0:\n        {}\n        time.sleep(100)\n"
    "        os._exit(0)\n"
)


def run(tmp_path, monkeypatch, code, *, cancel_after_s=None, **limits):
    """(how it ended, the sentence, seconds, pids that it wrote to the file `pids`)."""
    monkeypatch.setattr(job_process, "GRACE_SECONDS", 1.0)
    monkeypatch.setattr(job_process, "LOOK_SECONDS", 0.1)
    script = tmp_path / "job.py"
    script.write_text(f"open({str(tmp_path / 'pids')!r}, 'a').write('')\n" + code.replace("HERE", str(tmp_path)))
    monkeypatch.setattr(job_process, "PROGRAM", (str(script),))
    told = []
    process = JobProcess("ingest", ["ingest"], tmp_path, dataclasses.replace(LIMITS, **limits), told.append, True)

    async def whole():
        task = asyncio.create_task(process.run(None))
        if cancel_after_s is not None:
            await asyncio.sleep(cancel_after_s)
            await process.end()
        return await asyncio.wait_for(task, 50)

    began = time.monotonic()
    ended = asyncio.run(whole())
    pids = [int(p) for p in (tmp_path / "pids").read_text().split()]
    return ended, sentence("ingest", ended), time.monotonic() - began, pids, told


def test_one_that_sleeps_is_ended_at_the_end_of_its_time(tmp_path, monkeypatch):
    ended, said, seconds, _, _ = run(tmp_path, monkeypatch, "import time; time.sleep(100)", wall_s=1.0)
    assert seconds < 20 and ended.code != 0
    assert said.startswith("the ingest took longer than 1 s and was ended. The files are kept: let whoever runs")
    assert "`chipledger ingest`" in said


@pytest.mark.parametrize(
    "code",
    [
        "x = bytearray(8 << 30)",
        "x = []\nwhile True: x.append(bytearray(64 << 20))",
        "import ctypes; m = ctypes.CDLL(None); m.malloc.restype = ctypes.c_void_p\n"
        "if not m.malloc(ctypes.c_size_t(8 << 30)): raise MemoryError",
        FORKS.format(4, "x = bytearray(b'1') * (400 << 20)") + "time.sleep(100)",
    ],
    ids=["at once", "bit by bit", "beside Python", "in four processes"],
)
def test_one_that_takes_all_memory_is_ended_and_said(tmp_path, monkeypatch, code):
    _, said, _, _, _ = run(tmp_path, monkeypatch, code)
    assert said.startswith("the ingest took more than 1.07 GB of memory and was ended."), said


def test_one_that_writes_a_file_without_end_is_ended(tmp_path, monkeypatch):
    code = (
        "import sys\ntry:\n    with open('HERE/big', 'wb') as f:\n        while True: f.write(b'x' * (1 << 18))\n"
        "except OSError as e:\n    print('error: cannot be written (' + e.strerror + ')', file=sys.stderr); sys.exit(2)"
    )
    _, said, _, _, _ = run(tmp_path, monkeypatch, code)
    assert said.startswith("the ingest wrote a file of more than 1.05 MB and was ended.")
    assert (tmp_path / "big").stat().st_size <= 1 << 20


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_one_that_says_too_much_is_ended_and_takes_no_memory_of_the_server(tmp_path, monkeypatch, stream):
    monkeypatch.setattr(job_process, "ANSWER_BYTES", 1 << 20)
    monkeypatch.setattr(job_process, "LINE_BYTES", 1 << 20)
    code = f"import sys\nwhile True: sys.{stream}.write('x' * (1 << 16))"
    ended, said, _, _, _ = run(tmp_path, monkeypatch, code)
    assert "said" in said and "was ended" in said and len(ended.said) <= 50


def test_one_that_ignores_being_told_is_ended_all_the_same(tmp_path, monkeypatch):
    code = (
        "import signal, time\nfor told in (signal.SIGTERM, signal.SIGHUP): signal.signal(told, signal.SIG_IGN)\n"
        "time.sleep(100)"
    )
    ended, _, seconds, _, _ = run(tmp_path, monkeypatch, code, cancel_after_s=0.7)
    assert ended.code < 0 and seconds < 20


@pytest.mark.parametrize("how", ["", "os.fork() and os._exit(0)"], ids=["children", "grandchildren"])
def test_what_it_started_ends_with_it(tmp_path, monkeypatch, how):
    code = FORKS.format(3, f"{how or 'pass'}; open('HERE/pids', 'a').write(f'{{os.getpid()}} ')") + "time.sleep(0.7)"
    ended, _, seconds, pids, _ = run(tmp_path, monkeypatch, code)
    assert len(pids) == 3 and seconds < 20
    deadline = time.monotonic() + 10
    while any(seen(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert ended.code != 0


def test_one_that_starts_processes_without_end_is_ended(tmp_path, monkeypatch):
    _, said, _, _, _ = run(tmp_path, monkeypatch, FORKS.format(12, "pass") + "time.sleep(100)")
    assert said.startswith("the ingest started more than 6 processes and was ended.")


def test_a_defect_and_a_killed_process_are_told_apart(tmp_path, monkeypatch):
    _, said, _, _, _ = run(tmp_path, monkeypatch, "1/0")
    assert said == (
        "a defect of Chipledger, not of the files (ZeroDivisionError: division by zero). The files are kept."
    )
    _, said, _, _, _ = run(tmp_path, monkeypatch, "import os; os.kill(os.getpid(), 9)")
    assert said == "the system ended the ingest (signal 9), most likely for lack of memory. The files are kept."


def test_an_answer_that_is_none_is_a_failure_and_not_a_run(tmp_path, monkeypatch):
    ended, said, _, _, _ = run(tmp_path, monkeypatch, "print('{')")
    assert ended.code != 0 and "ended without an answer" in said


def test_progress_and_files_are_heard_and_what_looks_like_them_is_not_trusted(tmp_path, monkeypatch):
    lines = [
        '{"progress": 0.5, "doing": "a"}',
        '{"file": {"name": "x"}}',
        '{"progress": ',
        '{"file": 3',
        '{"progress"}',
    ]
    code = f"import sys\nfor line in {lines!r}: print(line, file=sys.stderr)\nprint('{{}}')"
    ended, _, _, _, told = run(tmp_path, monkeypatch, code)
    assert ended.code == 0 and told == [{"progress": 0.5, "doing": "a"}, {"file": {"name": "x"}}]


def test_it_is_told_nothing_of_our_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("CHIPLEDGER_OIDC_SECRET", "s3cret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    code = "import os, json; print(json.dumps(sorted(os.environ)))"
    ended, _, _, _, _ = run(tmp_path, monkeypatch, code)
    assert "PATH" in ended.answer and not {"CHIPLEDGER_OIDC_SECRET", "AWS_SECRET_ACCESS_KEY"} & set(ended.answer)


def test_limits_follow_from_the_machine_where_nothing_is_said():
    usual = bounds()
    assert usual.wall_s == 6 * 3600 and usual.cpu_s == usual.wall_s * (os.cpu_count() or 1)
    assert 0 < usual.memory_bytes < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    asked = bounds(0.5, 2)
    assert (asked.wall_s, asked.memory_bytes, asked.wall) == (1800, 2_000_000_000, "1800 s")
    assert Path("/proc").is_dir()
