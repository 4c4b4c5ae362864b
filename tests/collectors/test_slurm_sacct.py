"""Slurm's accounting, as tables and JSON that sacct may write, and what becomes of each."""

import gzip
import json

import pytest

from collectors.base import Source
from collectors.training import hf_trainer, slurm_sacct
from errors import InputError
from tests.collectors.reading import read, source_of

S = 10**9
HEAD = [
    "JobID",
    "JobName",
    "User",
    "State",
    "ExitCode",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "Elapsed",
    "AllocTRES",
    "NodeList",
    "WorkDir",
]
DAY = 1772582400  # 2026-03-04 00:00:00 UTC, s
TRES = "billing=64,cpu=64,gres/gpu:h100=16,gres/gpu=16,mem=1T,node=2"


def clock(hours: float) -> str:
    minutes = round(hours * 60)
    return f"2026-03-04T{minutes // 60:02d}:{minutes % 60:02d}:00"


def lasted(hours: float) -> str:
    return f"{int(hours):02d}:{round(hours % 1 * 60):02d}:00"


def job(number="4242", state="COMPLETED", submit=5.0, start=6.0, end=8.0, **more):
    """One record by its column; times in hours of the day, None where Slurm writes Unknown."""
    row = dict.fromkeys(HEAD, "") | {
        "JobID": number,
        "JobName": "llama-8b",
        "User": "ann",
        "State": state,
        "ExitCode": "0:0",
        "AllocTRES": TRES,
        "NodeList": "gpu[07-08]",
        "WorkDir": "/home/ann",
        "Submit": clock(submit),
        "Eligible": clock(submit),
        "Start": "Unknown" if start is None else clock(start),
        "End": "Unknown" if end is None else clock(end),
        "Elapsed": "00:00:00" if start is None or end is None else lasted(end - start),
    }
    return row | more


def table(*rows, names=HEAD, separator="|", behind=""):
    lines = [separator.join(names), *(separator.join(row.get(name, "") for name in names) for row in rows)]
    return "".join(f"{line}{behind}\n" for line in lines)


def fixed(*rows, names=("JobID", "JobName", "State", "Start", "End"), width=19):
    """As sacct writes without -P: what is too long is cut, its last character a +."""

    def cut(text):
        return text if len(text) <= width else text[: width - 1] + "+"

    lines = [[cut(name) for name in names], ["-" * width] * len(names)]
    lines += [[cut(row.get(name, "")) for name in names] for row in rows]
    return "".join(" ".join(f"{cell:>{width}}" for cell in line) + " \n" for line in lines)


NODE_FAILED = job(state="NODE_FAIL", ExitCode="1:0")
TIMED_OUT = job(state="TIMEOUT", submit=8.0, start=8.5, end=12.5)
REQUEUED = (
    NODE_FAILED,
    job("4242.batch", "CANCELLED", JobName="batch", User="", WorkDir=""),
    TIMED_OUT,
    job("4242.extern", submit=8.5, start=8.5, end=12.5, JobName="extern", User="", WorkDir=""),
)
RUN = table(*REQUEUED)


def number(value):
    return {"set": value is not None, "infinite": False, "number": value or 0}


def entry(job_id=4242, state="COMPLETED", submit=5.0, start=6.0, end=8.0, gpus=16, **more):
    """A job of `sacct --json`; times in hours of the day."""

    def at(hours):
        return 0 if hours is None else DAY + round(hours * 3600)

    elapsed = 0 if start is None or end is None else at(end) - at(start)
    return {
        "account": "lab",
        "array": {"job_id": 0, "task_id": number(None), "task": ""},
        "association": {"id": 7},
        "exit_code": {"status": ["SUCCESS"], "return_code": number(0), "signal": {"id": number(None), "name": ""}},
        "het": {"job_id": 0, "job_offset": number(None)},
        "job_id": job_id,
        "name": "llama-8b",
        "nodes": "gpu[07-08]",
        "restart_cnt": 0,
        "state": {"current": [state], "reason": "None"},
        "steps": [],
        "time": {
            "elapsed": elapsed,
            "eligible": at(submit),
            "end": at(end),
            "start": at(start),
            "submission": at(submit),
        },
        "tres": {
            "allocated": [{"type": "cpu", "name": "", "id": 1, "count": 64}]
            + [{"type": "gres", "name": "gpu:h100", "id": 1002, "count": gpus}] * bool(gpus)
        },
        "user": "ann",
        "working_directory": "/home/ann",
    } | more


def document(*jobs):
    return json.dumps(
        {"jobs": [*jobs], "meta": {"Slurm": {"version": {"major": "24"}}}, "errors": [], "warnings": []}, indent=1
    )


def got(tmp_path, data, name="sacct.txt"):
    source = source_of(tmp_path, data, name)
    assert slurm_sacct.sniff(source) >= 0.9
    return read(slurm_sacct, source)


def hours(ns):
    return None if ns is None else (ns / S - DAY) / 3600


def life(found, kind="job"):
    """[(attempt, start, end)] in hours of the day."""
    return [
        (r["attempt"], hours(r["start_ns"]), hours(r["end_ns"])) for r in found.rows["lifecycle"] if r["kind"] == kind
    ]


REQUEUED_JOBS, REQUEUED_WAITS = [(0, 6, 8), (1, 8.5, 12.5)], [(0, 5, 6), (1, 8, 8.5)]


@pytest.mark.parametrize(
    "data",
    [
        RUN,
        table(*REQUEUED, behind="|"),
        table(*REQUEUED, names=HEAD[::-1]),
        table(*REQUEUED, separator=";"),
        "\ufeff" + RUN.replace("\n", "\r\n"),
        "$ sacct -j 4242 -D -P\n" + RUN,
        table(*REQUEUED[2:]) + table(*REQUEUED[:2]),
        table(*REQUEUED, *REQUEUED),  # both `sacct -j 4242` and `sacct -j 4242.batch` of a script
        gzip.compress(RUN.encode()),
        document(entry(state="NODE_FAIL"), entry(state="TIMEOUT", submit=8, start=8.5, end=12.5)),
    ],
    ids=["-P", "-p", "reversed", ";", "windows", "prompt", "later first", "twice", "gz", "json"],
)
def test_each_start_of_a_job_is_an_attempt(tmp_path, data):
    found = got(tmp_path, data)
    assert life(found) == REQUEUED_JOBS and life(found, "queued") == REQUEUED_WAITS
    assert found.column("evidence", "cause") == ["host", "time_limit"]
    assert [hours(at) for at in found.column("evidence", "ts_ns")] == [8, 12.5]
    assert found.column("evidence", "attempt") == [0, 1]
    assert found.facts["job_name"] == "llama-8b" and found.facts["chips"] == 16
    details = [json.loads(row["detail"]) for row in found.rows["lifecycle"] if row["kind"] == "job"]
    assert [d["outcome"] for d in details] == ["interrupted"] * 2 and details[0]["scheduler"] == "slurm"
    assert ("time zone" in found.reasons()) is not ('"jobs"' in str(data))


def test_widths_that_are_fixed(tmp_path):
    done = job("20747370000000000123_4.batch")  # its number is cut off
    rows = (job(number="123456789", state="CANCELLED by 1000123"), job("123456789.batch", "OUT_OF_MEMORY"), done)
    found = got(tmp_path, fixed(*rows, width=19))
    assert life(found) == [(0, 6, 8)] and found.column("evidence", "cause") == ["user", "host_out_of_memory"]
    assert "rows (1)" in found.reasons()
    found = got(tmp_path, fixed(*rows, names=("JobID", "JobName", "State"), width=10))
    assert "lifecycle" not in found.rows and found.column("evidence", "cause") == ["user"]
    assert found.column("evidence", "ts_ns") == [None]


def test_a_cut_off_list_of_resources_tells_no_number(tmp_path):
    found = got(tmp_path, table(job(AllocTRES="billing=64,gres/gpu=1+")))
    assert "chips" not in found.facts


def test_a_job_that_completed_came_to_its_end_by_itself(tmp_path):
    found = got(tmp_path, table(job()))
    assert life(found) == [(0, 6, 8)] and "evidence" not in found.rows
    assert "outcome" not in json.loads(found.column("lifecycle", "detail")[-1])


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        ("CANCELLED by 0", "user"),
        ("PREEMPTED", "preemption"),
        ("OUT_OF_MEMORY", "host_out_of_memory"),
        ("DEADLINE", "time_limit"),
        ("BOOT_FAIL", "host"),
        ("FAILED", "process_exit"),
    ],
)
def test_states_that_end_a_job(tmp_path, state, cause):
    assert got(tmp_path, table(job(state=state))).column("evidence", "cause") == [cause]


def test_what_still_runs_or_waits_has_no_end(tmp_path):
    found = got(tmp_path, table(job(state="RUNNING", end=None, Elapsed="02:00:00")))
    assert life(found) == [(0, 6, None)] and "evidence" not in found.rows
    found = got(tmp_path, table(job(state="PENDING", start=None, end=None, AllocTRES="")))
    assert life(found) == [] and life(found, "queued") == [(0, 5, None)] and "chips" not in found.facts


@pytest.mark.parametrize("start", [None, 7.0], ids=["none", "at its end"])
def test_a_job_that_was_cancelled_before_it_began_held_nothing(tmp_path, start):
    found = got(
        tmp_path, table(job(state="CANCELLED by 7", start=start, end=7.0, Elapsed="00:00:00", NodeList="None assigned"))
    )
    assert life(found) == [] and life(found, "queued") == [(0, 5, 7)]


def test_the_wait_begins_when_the_job_could_have_begun(tmp_path):
    assert life(got(tmp_path, table(job(Eligible=clock(5.5)))), "queued") == [(0, 5.5, 6)]


def test_parts_of_a_heterogeneous_job_are_one(tmp_path):
    parts = (job("9+0", end=7.5, AllocTRES="gres/gpu=8"), job("9+1", "FAILED", AllocTRES="gres/gpu=4"))
    for data in (
        table(*parts),
        document(
            entry(9, end=7.5, gpus=8, het={"job_id": 9, "job_offset": number(0)}),
            entry(10, "FAILED", gpus=4, het={"job_id": 9, "job_offset": number(1)}),
        ),
    ):
        found = got(tmp_path, data)
        assert life(found) == [(0, 6, 8)] and found.facts["chips"] == 12
        assert found.column("evidence", "cause") == ["process_exit"]


def test_a_step_tells_that_memory_ran_out_where_the_job_says_that_it_failed(tmp_path):
    rows = (
        job(state="FAILED"),
        job("4242.0", "OUT_OF_MEMORY"),
        job(submit=8, start=8.5, end=9),
        job("4242.0", start=8.5, end=9),
    )
    found = got(tmp_path, table(*rows))
    assert found.column("evidence", "cause") == ["process_exit", "host_out_of_memory"]
    assert found.column("evidence", "attempt") == [0, 0]


def test_chained_jobs_of_one_name_are_attempts(tmp_path):
    chain = (
        job("7", "TIMEOUT"),
        job("8", "TIMEOUT", submit=5, Eligible=clock(8), start=8.25, end=10),
        job("9", "PENDING", start=None, end=None),
    )
    found = got(tmp_path, table(*chain))
    assert life(found) == [(0, 6, 8), (1, 8.25, 10)] and life(found, "queued") == [
        (0, 5, 6),
        (1, 8, 8.25),
        (2, 5, None),
    ]
    assert "one name and never ran at once" in found.reasons()
    array = tuple(job(f"7_{n}", "TIMEOUT", start=6 + n, end=7 + n) for n in range(3))
    assert len(life(got(tmp_path, table(*array)))) == 3


@pytest.mark.parametrize(
    "others",
    [
        (job("8", JobName="other", start=9, end=10),),
        (job("8", start=7, end=9),),
        (job("8", User="bob", start=9, end=10),),
        (job("8", WorkDir="/tmp", start=9, end=10),),
        (job("8", start=None, end=None, Elapsed=""),),
        (job("4242_7", start=7),),
    ],
    ids=["name", "at once", "user", "folder", "no times", "array"],
)
def test_a_list_of_jobs_is_no_life_of_one(tmp_path, others):
    with pytest.raises(InputError, match=r"a list of 2 jobs \(2 COMPLETED\).*sacct -j JOBID -D"):
        got(tmp_path, table(job(), *others))


def test_names_of_everybody_are_no_chain(tmp_path):
    with pytest.raises(InputError, match="a list of 2 jobs"):
        got(tmp_path, table(job("7", JobName="bash"), job("8", JobName="bash", start=9, end=10)))


def test_earlier_starts_that_are_not_there_are_told(tmp_path):
    found = got(tmp_path, table(job(Restarts="2"), names=[*HEAD, "Restarts"]))
    assert "attempts (2)" in found.reasons() and "sacct -D" in found.reasons()


def test_what_times_there_are_tell_the_others(tmp_path):
    for names in (["JobID", "State", "Start", "Elapsed"], ["JobID", "State", "End", "ElapsedRaw"]):
        found = got(tmp_path, table(job(ElapsedRaw="7200"), names=names))
        assert life(found) == [(0, 6, 8)]


def test_seconds_since_1970_and_zones_are_no_guess(tmp_path):
    for start, end in (
        (str(DAY + 21600), str(DAY + 28800)),
        ("2026-03-03T22:00:00-08:00", "2026-03-04T00:00:00 UTC-0800"),
    ):
        found = got(tmp_path, table(job(Submit="", Eligible="", Start=start, End=end)))
        assert life(found) == [(0, 6, 8)] and not found.lost


def test_summer_time_that_began_meanwhile_is_told_by_the_elapsed_time(tmp_path):
    found = got(tmp_path, table(job(end=9.0, Elapsed="02:00:00")))
    assert life(found) == [(0, 6, 8)] and "summer time" in found.reasons()
    assert life(
        got(tmp_path, table(job(end=9.0, Elapsed="02:00:00", Suspended="01:00:00"), names=[*HEAD, "Suspended"]))
    ) == [(0, 6, 9)]


def test_a_name_may_hold_what_separates_fields(tmp_path):
    names = [n for n in HEAD if n != "WorkDir"]
    assert got(tmp_path, table(job(JobName="a|b|c"), names=names)).facts["job_name"] == "a|b|c"
    with pytest.raises(InputError, match="no record of a job"):
        got(tmp_path, table(job(JobName="a|b|c")))  # the folder might hold one as well


def test_slices_of_gpus_are_no_chips(tmp_path):
    found = got(tmp_path, table(job(AllocTRES="gres/gpu:a100_1g.5gb=7,gres/gpu=7")))
    assert "chips" not in found.facts and "MIG" in found.reasons()


def test_attempts_on_different_numbers_of_chips(tmp_path):
    found = got(tmp_path, table(NODE_FAILED, TIMED_OUT | {"AllocTRES": "gres/gpu=8"}))
    assert found.facts["chips"] == 16 and "by attempt" not in found.reasons()
    held = [(one["chips"], (one["last_ns"] - one["first_ns"]) / 3600e9) for one in found.ran]
    assert held == [(16, 2), (8, 4)]
    running = TIMED_OUT | {"AllocTRES": "gres/gpu=8", "End": "Unknown", "State": "RUNNING"}
    going_on = got(tmp_path, table(NODE_FAILED, running))  # until when is not told
    assert not going_on.ran and "from 8 to 16 by attempt" in going_on.reasons()


def test_the_node_that_failed_is_named(tmp_path):
    found = got(tmp_path, table(NODE_FAILED | {"FailedNode": "gpu08"}, names=[*HEAD, "FailedNode"]))
    assert found.column("evidence", "host") == ["gpu08"]
    assert got(tmp_path, table(NODE_FAILED)).column("evidence", "host") == [None]


def test_nothing_of_time_and_nothing_that_ended_it(tmp_path):
    with pytest.raises(InputError, match="no time of the job"):
        got(tmp_path, table(job(), names=["JobID", "JobName", "State"]))
    with pytest.raises(InputError, match="no record of a job"):
        got(tmp_path, table(job("4242.batch")))


@pytest.mark.parametrize(
    "text",
    [
        "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n1 gpu a ann R 1:00 1 n1\n",
        "jobid,loss,lr\n1,2,3\n",
        "step 1 State JobID\n",
        '{"jobs": [{"id": 1, "time": 3}]}',
        "",
    ],
)
def test_other_files_are_no_accounting(tmp_path, text):
    assert slurm_sacct.sniff(source_of(tmp_path, text)) == 0


@pytest.mark.parametrize(
    "lines", [["2026-03-04 05:06:07 step 1 loss 2.0"] * 9, ["{'loss': 2.5, 'epoch': 0.01}", "", " 1%| | 1/500"] * 9]
)
def test_a_log_that_begins_with_a_table_is_a_log(tmp_path, lines):
    """As where the script of a job asks for its own record before it begins."""
    begun = table(job(state="RUNNING"), job("4242.batch", state="RUNNING"))
    assert slurm_sacct.sniff(source_of(tmp_path, "\n".join(["starting", begun, *lines]))) == 0
    assert slurm_sacct.sniff(source_of(tmp_path, "\n".join(["starting", *["loading"] * 9, begun]))) == 0.9


@pytest.mark.parametrize("printed", [table(job()), fixed(job(state="RUNNING", end=None))])
def test_a_table_that_a_job_printed_into_its_log_is_none_of_its_own(tmp_path, printed):
    losses = "".join(f"{{'loss': {3 - n / 100}, 'grad_norm': 1.2, 'epoch': {n / 100}}}\n" for n in range(1, 40))
    bar = "".join(f"\r {n}%|##   | {n}/100 [00:{n:02d}<01:00,  1.00it/s]" for n in range(1, 40))
    log = source_of(tmp_path, f"on gpu07\n{printed}{bar}\n{losses}", "slurm-4242.out")
    assert slurm_sacct.sniff(log) == 0 < hf_trainer.sniff(log)
    failed = f"{printed}2026-03-04 10:00:01 started\n[rank0]: Traceback (most recent call last):\nRuntimeError: NCCL\n"
    assert slurm_sacct.sniff(source_of(tmp_path, failed)) == 0
    assert slurm_sacct.sniff(source_of(tmp_path, f"ann@login:~$ sacct\n{printed}ann@login:~$\n")) == 0.9


def test_a_job_of_many_steps(tmp_path):
    path = tmp_path / "many.txt"
    path.write_text(table(job(), *[job(f"4242.{n}") for n in range(5_000)]))
    assert life(read(slurm_sacct, Source(path, "many.txt"))) == [(0, 6, 8)]


def test_what_is_none_is_not_said(tmp_path):
    (row,) = got(tmp_path, document(entry(state="FAILED"))).rows["evidence"]
    assert row["text"] == "Slurm job 4242 State=FAILED ExitCode=0:0 NodeList=gpu[07-08]"
