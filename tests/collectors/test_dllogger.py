"""Lines of DLLogger; every one here was written for these tests."""

import json
import math
from time import process_time

import pytest

from analyzers.lost import checkpoints
from app.questions.checkpoints.words import lost
from collectors.ingest import ingest
from collectors.training import dllogger
from errors import InputError
from tests.collectors.reading import read, source_of

S = 1_000_000_000
T0 = 1_700_000_000


def entry(second, step, data, since=0.0, **more):
    """A line that was written so many seconds after T0 by a start of the job `since` then."""
    at = T0 + second
    told = {"timestamp": f"{at:.6f}", "datetime": "2023-11-14 22:13:20", "elapsedtime": f"{second - since:.6f}"}
    return f"DLLL {json.dumps({**told, 'type': 'LOG', 'step': step, 'data': data} | more)}\n"


def unit(metric, unit):
    told = {"timestamp": f"{T0}.5", "elapsedtime": "0.5", "type": "METADATA", "metric": metric}
    return f"DLLL {json.dumps(told | {'metadata': {'unit': unit, 'name': metric}})}\n"


def steps(first, last, second, each=2, epoch=0, since=0.0, **more):
    return "".join(
        entry(second + each * (n - first), [epoch, n], {"step_loss": 3 - n / 100, "lr": 0.1} | more, since)
        for n in range(first, last + 1)
    )


RUN = (
    unit("training_sequences_per_second", "sequences/s")
    + entry(1, "PARAMETER", {"Config": ["Namespace(lr=0.1, max_steps=20.0)"], "seed": 7})
    + entry(4, "PARAMETER", {"train_start": True})
    + entry(10, [0, 0], {"average_loss": 3.5, "learning_rate": 0.1})
    + steps(1, 9, 12)
    + entry(28, "PARAMETER", {"checkpoint_step": 9})
    + steps(10, 19, 30)
    + entry(50, [], {"e2e_train_time": 50.0, "training_sequences_per_second": 128.5})
)


def log(tmp_path, text, name="dllogger.json"):
    return read(dllogger, source_of(tmp_path, text, name))


def test_a_run(tmp_path):
    assert dllogger.sniff(source_of(tmp_path, RUN)) == 0.85
    got = log(tmp_path, RUN)
    assert got.column("steps", "step") == list(range(20)) and set(got.column("steps", "attempt")) == {0}
    assert got.column("steps", "dur_ns") == [6 * S] + [2 * S] * 19  # the first since training began
    assert [ns // S - T0 for ns in got.column("steps", "logged_ns")] == [10, *range(12, 29, 2), *range(30, 49, 2)]
    assert got.column("steps", "loss")[:2] == [3.5, 2.99]
    life = {row["kind"]: row for row in got.rows["lifecycle"]}
    assert (life["job"]["start_ns"], life["job"]["end_ns"]) == (T0 * S, (T0 + 50) * S)
    save = life["checkpoint_save"]
    assert (save["start_ns"], save["end_ns"], save["step"]) == ((T0 + 28) * S, None, 9)
    values = {row["name"]: row for row in got.rows["scalars"]}
    assert values["training_sequences_per_second"]["unit"] == "sequences/s" and values["seed"]["value"] == 7
    assert values["lr"]["ts_ns"] == (T0 + 48) * S and values["lr"]["step"] == 19
    assert got.facts == {"planned_steps": 20}


def test_a_time_to_the_last_digit(tmp_path):
    """A time in seconds has more digits than a number of Python's holds."""
    text = RUN.replace(f"{T0 + 12}.000000", f"{T0 + 12}.123456789")
    assert log(tmp_path, text).column("steps", "logged_ns")[1] == (T0 + 12) * S + 123456789


def test_iterations_that_begin_anew_with_each_epoch(tmp_path):
    epochs = [
        steps(0, 4, 100 * e, epoch=e) + entry(100 * e + 9, [e], {"train_loss": 2.0, "val_loss": 2.5}) for e in range(3)
    ]
    got = log(tmp_path, "".join(epochs))
    assert got.column("steps", "step") == list(range(15)) and set(got.column("steps", "attempt")) == {0}
    # before the first of an epoch lies an evaluation: it took no 92 s
    assert got.column("steps", "dur_ns") == [None] + [2 * S] * 14
    assert dllogger.NUMBERED_ON in got.reasons() and dllogger.PAUSED in got.reasons()
    started = [ns // S - T0 for ns in got.column("steps", "start_ns")[1:]]
    assert started == [0, 2, 4, 6, 98, 100, 102, 104, 106, 198, 200, 202, 204, 206]


def test_one_in_so_many_is_logged(tmp_path):
    text = "".join(entry(20 * n + 20, [n // 3, 10 * (n % 3)], {"train.loss": 1.0}) for n in range(6))
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(51)) and set(got.column("steps", "dur_ns")[1:]) == {2 * S}
    assert dllogger.EVERY in got.reasons()


def test_times_that_entries_tell(tmp_path):
    both = {"train.data_time": 100.0, "train.compute_time": 300.0}
    got = log(tmp_path, unit("train.data_time", "ms") + unit("train.compute_time", "ms") + steps(0, 4, 0, **both))
    assert set(got.column("steps", "dur_ns")) == {400_000_000}
    assert set(log(tmp_path, steps(0, 4, 0, train_iter_time=1.5)).column("steps", "dur_ns")) == {1.5 * S}


def test_a_step_that_is_tried_again(tmp_path):
    """An overflow of the loss scale: the optimizer does not step, and the number stays."""
    text = steps(0, 5, 0) + steps(5, 5, 12) + steps(5, 5, 14) + steps(6, 9, 16)
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(10)) and set(got.column("steps", "attempt")) == {0}
    assert got.column("steps", "dur_ns")[4:7] == [2 * S, 6 * S, 2 * S] and dllogger.TRIED in got.reasons()


def test_lines_of_several_verbosities_are_one_entry(tmp_path):
    """Without elapsedtime, as older versions write them."""
    lines = [
        entry(2 * n, [0, 5 * n], data).replace('"elapsedtime"', '"other"')
        for n in range(1, 5)
        for data in ({"train.loss": 1.0 * n}, {"train.data_time": 0.1, "train.compute_time": 0.3})
    ]
    got = log(tmp_path, "".join(lines) + entry(9, [], {"a": 1.0}) + entry(9, [], {"b": 1.0}))
    assert got.column("steps", "step") == list(range(5, 21)) and set(got.column("steps", "dur_ns")) == {400_000_000}
    assert [x for x in got.column("steps", "loss") if x] == [1, 2, 3, 4] and dllogger.TRIED not in got.reasons()
    assert [row["end_ns"] // S - T0 for row in got.rows["lifecycle"]] == [9]


def test_a_timing_that_is_a_mean_of_a_few_steps(tmp_path):
    """As NeMo's is: the times of the entries are each step's, but for one that no such mean can hold."""
    took = [60, 20, 20, 20, 20, 20, 50, 300, 20, 20]
    own = [min(t, 50) for t in took]
    text = entry(1, "PARAMETER", {"cfg/global_batch_size": 2048, "cfg/data/seq_length": 2048, "cfg/fp8": True})
    text += entry(2, "PARAMETER", {"cfg/tensor_model_parallel_size": 4, "cfg/context_parallel_size": 1})
    for n in range(len(took)):
        last = own[max(0, n - 4) : n + 1]
        numbers = {"train_step_timing in s": sum(last) / len(last), "reduced_train_loss": 2.5, "epoch": 0}
        text += entry(100 + sum(took[: n + 1]), n, numbers)
    got = log(tmp_path, text)
    assert got.column("steps", "dur_ns") == [ns * S for ns in (50, 20, 20, 20, 20, 20, 50, 32, 20, 20)]
    assert set(got.column("steps", "loss")) == {2.5}
    assert got.facts == {"global_batch": 2048, "sequence_length": 2048, "parallelism": {"tensor": 4}}


def test_another_start_in_the_same_file(tmp_path):
    got = log(tmp_path, steps(0, 9, 10) + steps(5, 9, 110, since=100) + entry(120, [], {"e2e": 20.0}, 100))
    assert got.column("steps", "step") == [*range(10), *range(5, 10)]
    assert got.column("steps", "attempt") == [0] * 10 + [1] * 5
    jobs = [(row["start_ns"] // S - T0, row["end_ns"] and row["end_ns"] // S - T0) for row in got.rows["lifecycle"]]
    assert jobs == [(0, None), (100, 120)]
    assert got.column("steps", "dur_ns")[10] is None  # between lies all that starting again took


def test_entries_that_are_no_steps(tmp_path):
    text = (
        steps(0, 9, 10)
        + entry(40, [0, 573.0], {"final_loss": 2.5})
        + entry(41, [0, 700], {"val_loss": 2.5, "val_items_per_sec": 10.0})
        + entry(42, 3, {"loss": 1.0, "epoch_time": 30.0})
        + entry(43, [3], {"train_loss": 1.0})
        + entry(44, [0, 1, 2], {})
        + entry(45, [0, -4], {"loss": 1.0})
        + entry(46, ["a", {}], {"loss": 1.0})
        + entry(47, None, {"loss": 1.0})
    )
    got = log(tmp_path, text)
    assert got.column("steps", "step") == list(range(10)) and len(got.rows["scalars"]) == 20 + 9
    assert log(tmp_path, entry(5, 3, {"loss": 1.0}) + entry(7, 4, {"loss": 1.0})).column("steps", "step") == [3, 4]


def test_odd_lines(tmp_path):
    odd = (
        "DLLL {cut\nDLLL []\nDLLL 5\n"
        + 'DLLL {"data": {"a": NaN, "b": 1e999, "c": ' + "9" * 400 + '}, "step": [1e300, 5]}\n'
        + entry(1, [10**18, 10**18], {"loss": 1.0})
        + entry(2, [10**400, 1], {"loss": 1.0})
        + entry(3, [0, 5], {"x" * 100_000: 1.0, "\ud800": 2.0, "loss": True})
        + entry(4, [0, 6], {"loss": math.inf}, timestamp=[], elapsedtime={})
        + entry(4, [0, 7], {"loss": 1.0}, timestamp="9" * 30, elapsedtime="-5")
        + "DLLL " + '{"a":' * 50_000 + "\n"
    )  # fmt: skip
    got = log(tmp_path, odd)
    assert "cut off" in got.reasons() and all(len(name) <= 200 for name in got.column("scalars", "name"))
    assert log(tmp_path, RUN.replace("\n", "\r\n")).rows == log(tmp_path, RUN).rows
    with pytest.raises(InputError, match="no training step"):
        log(tmp_path, "DLLL {}\n")


def test_among_the_output_of_a_job(tmp_path):
    text = "".join(f"[rank0]: 2023-11-14T22:13:20Z {line}\n" for line in RUN.splitlines())
    got = log(tmp_path, "starting\n" + text + "torch.cuda.OutOfMemoryError: CUDA out of memory.\n", "out.log")
    assert got.column("steps", "step") == list(range(20))
    assert got.column("evidence", "cause") == ["device_memory"]


def test_many_entries_take_seconds(tmp_path):
    text = steps(0, 5_000, 0)
    begun = process_time()
    assert len(log(tmp_path, text).rows["steps"]) == 5_001
    assert process_time() - begun < 2


def test_saves_of_which_the_beginning_is_told(tmp_path, store):
    (tmp_path / "dllogger.json").write_text(RUN)
    run = store.get(ingest([tmp_path / "dllogger.json"], store).run_id)
    result = checkpoints.analyze(run.tables, run.manifest.facts, {})
    assert result.unended == 1 and "Of no save was recorded when it ended" in str(lost(result))
    assert any("Of 1 save the beginning alone" in n for n in result.notes)
    assert not any("No save was recorded" in n for n in result.notes)


def test_what_is_written_twice_counts_once(tmp_path):
    """By two processes, or behind the prefixes of two pods."""
    once = log(tmp_path, RUN)
    for text in (
        "".join(f"{line}\n{line}\n" for line in RUN.splitlines()),
        "".join(f"[pod/w-{n}/t] {line}\n" for line in RUN.splitlines() for n in (0, 1)),
    ):
        got = log(tmp_path, text)
        assert got.rows == once.rows and dllogger.TWICE in got.reasons() and dllogger.TRIED not in got.reasons()


def test_a_step_far_ahead_again_and_again_is_no_reason_for_rows_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(dllogger, "_MOST_BETWEEN", 1_000)
    text = "".join(entry(n, [0, 500 * n], {"loss": 1.0}) for n in range(100))
    assert len(log(tmp_path, text).rows["steps"]) < 1_200


PRINTED = (
    "RUNNING EPOCHS FROM 0 TO 2\n"
    "DLL 2020-09-15 14:29:00.000000 - PARAMETER max_steps : 8 \n"
    "DLL 2020-09-15 14:29:01.000000 - PARAMETER train_start : True \n"
    + "".join(
        f"DLL 2020-09-15 14:29:{1 + n + 5 * e:02}.500000 - Epoch: {e} Iteration: {n}  "
        f"train.loss : {7 - n}.09304  train.total_ips : 267.44 img/s\n"
        f"DLL 2020-09-15 14:29:{1 + n + 5 * e:02}.500100 - Epoch: {e} Iteration: {n}  lr : 0.1 \n"
        for e in range(2)
        for n in range(1, 5)
    )
    + "DLL 2020-09-15 14:29:10.600000 - Epoch: 1  val.loss : nan \n"
    "DLL 2020-09-15 14:29:11.000000 - Summary: train.loss : 5.5  \n"
)


def test_what_dllogger_prints(tmp_path):
    assert dllogger.sniff(source_of(tmp_path, PRINTED)) == 0.85
    got = log(tmp_path, PRINTED, "out.log")
    assert got.column("steps", "step") == list(range(1, 9))
    assert got.column("steps", "dur_ns") == [1.5 * S, S, S, S, 2 * S, S, S, S]
    assert got.column("steps", "loss")[:2] == [6.09304, 5.09304]
    values = {row["name"]: (row["value"], row["unit"]) for row in got.rows["scalars"]}
    assert values["train.total_ips"] == (267.44, "img/s") and values["lr"] == (0.1, None)
    assert got.facts == {"planned_steps": 8} and "no time zone" in got.reasons()
    [job] = got.rows["lifecycle"]
    assert job["end_ns"] - job["start_ns"] == 11 * S


def column(second, epoch, told):
    return f"DLL 2021-06-14 23:{second // 60:02}:{second % 60:02}.500000 - epoch {epoch:>4} | {told}\n"


def columns(epoch, took, lrate):
    """An epoch of 20 iterations, and what comes behind it."""
    for n in range(1, 21):
        told = f"loss {41 - n / 10:5.2f} | mel loss nan | kl weight 0.01000 |  {5000 + n:7.2f} frames/s"
        yield column(50 * epoch + 2 * n, epoch, f"iter {n:>3}/20 | {told} | {took} 1.50 s | lrate {lrate}")
    yield column(50 * epoch + 48, epoch, "avg train loss 40.1 | 5001.5 frames/s | took 40.0 s")
    yield column(50 * epoch + 49, epoch, "avg val loss 39")


COLUMNS = "".join((*columns(1, "took", "3.16e-06"), *columns(2, "elapsed", "1.00E-01 -> 3.16E-06")))


def test_what_dllogger_prints_in_columns(tmp_path):
    got = log(tmp_path, "NVIDIA Release 21.05\n" + COLUMNS, "train.log")
    assert got.column("steps", "step") == list(range(1, 41)) and set(got.column("steps", "dur_ns")) == {1_500_000_000}
    assert got.column("steps", "loss")[:2] == [40.9, 40.8] and set(got.column("steps", "attempt")) == {0}
    first, last = got.rows["steps"][0], got.rows["steps"][-1]
    assert last["logged_ns"] - first["logged_ns"] == 88_000_000_000
    told = {(r["name"], r["step"]): r for r in got.rows["scalars"]}
    assert (told["frames/s", 2]["value"], told["frames/s", 2]["unit"]) == (5002.0, "frames/s")
    assert told["lrate", 21]["value"] == 3.16e-06 and told["avg val loss", 20]["value"] == 39
    assert math.isnan(told["mel loss", 1]["value"]) and "numbered on" in got.reasons()


@pytest.mark.parametrize("end", ["| a", "| 1", "| loss 1 -> ", "| " + "a " * 60, "| 1.0 s |", "|" * 50])
def test_columns_without_end_take_no_time(tmp_path, end):
    began = process_time()
    log(tmp_path, COLUMNS + "DLL 2021-06-14 23:59:59.500000 - epoch    3 | iter   1/20 " + end * 50_000 + "\n")
    assert process_time() - began < 5


@pytest.mark.parametrize("end", ["a" * 3_000_000, "a : b " * 500_000, "a : " * 700_000, "DLL 2020-01-01 " * 200_000])
def test_a_long_line_of_what_is_printed_takes_no_time(tmp_path, end):
    begun = process_time()
    log(tmp_path, PRINTED + f"DLL 2020-09-15 14:29:12.000000 - PARAMETER {end}\n")
    assert process_time() - begun < 2


def test_processes_that_each_write_of_a_step(tmp_path):
    """A moment apart, and by clocks that are not the same."""
    lines = [
        f"[default{rank}]: {entry(2 * n + rank / 100, [0, n], {'loss': 1.0, 'train_iter_time': 1.9})}"
        for n in range(10)
        for rank in (0, 1, 2)
    ]
    got = log(tmp_path, "".join(lines), "out.log")
    assert got.column("steps", "step") == list(range(10)) and set(got.column("steps", "dur_ns")) == {1.9 * S}
    assert dllogger.OTHERS in got.reasons() and dllogger.TRIED not in got.reasons()
    bare = log(tmp_path, "".join(lines).replace("train_iter_time", "lr"), "out.log")
    assert bare.column("steps", "dur_ns")[1:] == [2 * S] * 9


@pytest.mark.parametrize("started", [False, True])
def test_another_start_that_only_the_steps_tell(tmp_path, started):
    """What DLLogger prints names no time since its start: of 190 s without the job none is a step's."""

    def printed(first, last, second):
        begins = f"DLL 2023-11-14 22:{second // 60:02d}:{second % 60:02d}.00 - PARAMETER train_start : True\n"
        return begins * started + "".join(
            f"DLL 2023-11-14 22:{at // 60:02d}:{at % 60:02d}.00 - Epoch: 0 Iteration: {n}  train.loss : 2.5\n"
            for n, at in enumerate(range(second + 10, second + 10 * (last - first + 2), 10), first)
        )

    got = log(tmp_path, printed(0, 9, 0) + printed(5, 14, 280), "slurm.out")
    first = 10 * S if started else None
    assert got.column("steps", "dur_ns") == [*[first, *[10 * S] * 9]] * 2
    assert got.column("steps", "attempt") == [0] * 10 + [1] * 10
    begun = got.column("steps", "start_ns")[1] - 10 * S
    jobs = [((r["start_ns"] - begun) // S, r["end_ns"], r["attempt"]) for r in got.rows["lifecycle"]]
    assert jobs == ([(0, None, 0), (280, None, 1)] if started else [(10, None, 0), (290, None, 1)])


def test_loggers_of_processes_that_began_one_after_the_other_are_of_one_start(tmp_path):
    both = sorted((f"{n:03d}", q, steps(n, n, 10 + 2 * n + q / 100, since=3.0 * q)) for n in range(10) for q in (0, 1))
    got = log(tmp_path, "".join(line for _, _, line in both))
    assert got.column("steps", "step") == list(range(10)) and set(got.column("steps", "attempt")) == {0}
    assert [(r["start_ns"], r["attempt"]) for r in got.rows["lifecycle"]] == [(T0 * S, 0)]
    again = "".join(steps(n, n, 100 + 2 * n + q / 100, since=90 + 3.0 * q) for n in range(5, 15) for q in (0, 1))
    got = log(tmp_path, "".join(line for _, _, line in both) + again)
    assert got.column("lifecycle", "attempt") == [0, 1] and len(got.rows["steps"]) == 20
