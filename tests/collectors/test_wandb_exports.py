"""What W&B hands out of runs, and writes beside them; every file here was written for these tests."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collectors.base import HEAD_BYTES
from collectors.ingest import ingest
from collectors.training import hf_trainer, pipeline_trace, wandb_files, wandb_history
from errors import InputError
from runs.store import Store
from tests.collectors import test_hf_trainer, test_wandb_log, wandb_runs
from tests.collectors.reading import read, source_of

S = 1_000_000_000
T = 1_700_000_000
API = (
    ",_step,_timestamp,_runtime,train/loss,perf/step_time_seconds,sample\r\n"
    f"0,0,{T}.5,1.0,2.5,0.5,\r\n"
    f'1,1,{T + 1}.0,1.5,,0.5,"a, ""b"""\r\n'
    f"2,2,{T + 2}.0,2.5,NaN,,\r\n"
)
CHART = (
    '"Step","happy, run - train/loss","happy, run - train/loss__MIN","happy, run - train/loss__MAX"\n'
    '"0","2.5","2.5","2.5"\n"10","2","1.5","2.5"\n'
)
LINES = "".join(
    json.dumps({"_step": n, "_runtime": n, "_timestamp": T + n, "loss": 2.5 - n, "lr": {"a": 1}, "text": "x"}) + "\n"
    for n in range(3)
)
EVENTS = "".join(
    json.dumps({"system.gpu.0.powerWatts": 300 + n, "_wandb": True, "_timestamp": T + n, "_runtime": n}) + "\n"
    for n in range(3)
)
SUMMARY = json.dumps(
    {"loss": 0.5, "best": "NaN", "a": {"b": 2}, "text": "x", "_step": 9, "_timestamp": T, "_wandb": {}}
)
METADATA = json.dumps(
    {
        "os": "Linux",
        "startedAt": "2023",
        "codePath": "a.py",
        "gpu": "NVIDIA A100-SXM4-80GB",
        "gpu_count": 8,
        "cpu_count": 4,
    }
)
CONFIG = """wandb_version: 1

_wandb:
  desc: null
  value:
    e:
      w: {gpu: Tesla T4, gpu_count: 2}
per_device_train_batch_size:
  desc: null
  value: 4
gradient_accumulation_steps:
  value: 2
"""


def parquet(columns, metadata=None):
    out = io.BytesIO()
    table = pa.table(columns)
    pq.write_table(table.replace_schema_metadata(metadata) if metadata else table, out)
    return out.getvalue()


PARQUET = parquet(
    {"_step": [0.0, 1.0], "_timestamp": [T + 0.5, None], "loss": [2.5, None], "n": [1, 2], "t": ["a", "b"]}
)


def history(tmp_path, data, name="history.csv"):
    source = source_of(tmp_path, data, name)
    assert wandb_history.sniff(source) == 0.9
    return read(wandb_history, source)


def values(got):
    return [(r["step"], r["ts_ns"], r["name"], r["value"]) for r in got.rows["scalars"]]


def test_a_table_of_the_api(tmp_path):
    got = history(tmp_path, API)
    assert values(got) == [
        (0, T * S + S // 2, "train/loss", 2.5),
        (0, T * S + S // 2, "perf/step_time_seconds", 0.5),
        (1, (T + 1) * S, "perf/step_time_seconds", 0.5),
    ]
    assert [(r["step"], r["dur_ns"], r["logged_ns"]) for r in got.rows["steps"]] == [
        (0, S // 2, T * S + S // 2),
        (1, S // 2, (T + 1) * S),
    ]
    assert "values (1): no numbers" in got.reasons()
    assert values(history(tmp_path, "\ufeff" + API.replace("\r", ""))) == values(got)


def test_a_table_of_very_many_metrics(tmp_path):
    names = [f"gradients/model.layers.{n}.self_attn.q_proj.weight_norm" for n in range(2_000)]
    table = f"_step,_timestamp,{','.join(names)}\n" + "".join(f"{n},{T + n}{',2.5' * 2_000}\n" for n in range(2))
    got = history(tmp_path, table)
    assert len(table.partition("\n")[0]) > HEAD_BYTES
    assert len(got.rows["scalars"]) == 4_000 and {*got.column("scalars", "name")} == {*names}


def test_a_table_whose_job_counts_steps_of_its_own(tmp_path):
    got = history(tmp_path, "_step,trainer/global_step,loss\n0,50,1.5\n1,,1.25\n2,99,1\nx,1,1,1\n")
    assert values(got) == [(50, None, "loss", 1.5), (None, None, "loss", 1.25), (99, None, "loss", 1.0)]
    assert "rows (1): they have more or fewer fields" in got.reasons()


def test_a_table_of_a_chart(tmp_path):
    assert values(history(tmp_path, CHART, "wandb_export.csv")) == [
        (0, None, "train/loss", 2.5),
        (10, None, "train/loss", 2.0),
        (10, None, "train/loss__MIN", 1.5),
        (10, None, "train/loss__MAX", 2.5),
    ]
    two = "Step,a - loss,a - loss__MIN,a - loss__MAX,b - loss,b - loss__MIN,b - loss__MAX\n1,2,2,2,3,3,3\n"
    assert [name for *_, name, _ in values(history(tmp_path, two))] == ["a - loss", "b - loss"]


def test_parquet(tmp_path):
    got = history(tmp_path, PARQUET, "history.parquet")
    assert values(got) == [(0, T * S + S // 2, "loss", 2.5), (0, T * S + S // 2, "n", 1.0), (1, None, "n", 2.0)]


def test_an_empty_table_says_so(tmp_path):
    for data in (parquet({}, {"wandb-compacted": "true"}), "_step,loss\n", "_step,loss\n1,\n", parquet({"_step": [1]})):
        with pytest.raises(InputError, match="no row of metrics in it.*logged nothing"):
            history(tmp_path, data)


def test_lines_of_a_history_and_of_the_system(tmp_path):
    assert values(history(tmp_path, LINES))[:2] == [(0, T * S, "loss", 2.5), (0, T * S, "lr.a", 1.0)]
    got = history(tmp_path, EVENTS)
    assert values(got)[-1] == (None, (T + 2) * S, "gpu.0.powerWatts", 302.0)
    cut = history(tmp_path, LINES[:-9])
    assert len(cut.rows["scalars"]) == 4 and "the file ends in the middle of it" in cut.reasons()


def test_damaged_tables_are_refused(tmp_path):
    source = source_of(tmp_path, PARQUET[:4] + bytes(9) + PARQUET[13:], "history.parquet")
    with pytest.raises(InputError, match="the table is damaged"):
        read(wandb_history, source)
    assert wandb_history.sniff(source_of(tmp_path, PARQUET[:-20])) == 0
    with pytest.raises(InputError, match="more than 20,000 columns"):
        history(tmp_path, "_step" + ",x" * 20_000 + "\n1\n")
    again = history(tmp_path, "_step,a,a\n1,2,3\n")
    assert values(again) == [(1, None, "a", 2.0)] and "another has the same name" in again.reasons()
    odd = history(tmp_path, "_step,a\n-1,inf\n1e300,5\n0.5,-nan\n1,0x1p3\n2,١\n")
    assert [(step, value) for step, *_, value in values(odd)] == [(None, float("inf")), (None, 5.0)]


def test_a_table_of_several_runs_is_refused(tmp_path):
    rows = "_step,run_id,loss\n0,a,1.5\n1,{},1\n"
    assert len(history(tmp_path, rows.format("a")).rows["scalars"]) == 2
    assert len(history(tmp_path, "_step,id\n0,1\n1,2\n").rows["scalars"]) == 2
    several = parquet({"_step": [0, 0], "Name": ["a", "b"], "loss": [1.5, 2]})
    for data in (rows.format("b"), several, "Name,State,_step,loss\nhappy,finished,9,1\nsad,crashed,8,2\n"):
        with pytest.raises(InputError, match="rows of several runs"):
            history(tmp_path, data)


def files(tmp_path, data, name):
    source = source_of(tmp_path, data, name)
    assert wandb_files.sniff(source) == 0.9
    return read(wandb_files, source)


def test_a_summary(tmp_path):
    got = files(tmp_path, SUMMARY, "wandb-summary.json")
    told = {r["name"]: (r["step"], r["ts_ns"], r["value"]) for r in got.rows["scalars"]}
    assert told["loss"] == (9, T * S, 0.5) and told["a.b"][2] == 2 and told["best"][2] != told["best"][2]
    assert "values (1): no numbers" in got.reasons()


def test_metadata_and_configuration(tmp_path):
    assert files(tmp_path, METADATA, "x.json").facts == {"chip": "NVIDIA A100-SXM4-80GB", "chips_of_host": 8}
    tpu = json.dumps({"startedAt": "", "tpu": {"name": "TPU v5e", "count": 4}})
    assert files(tmp_path, tpu, "wandb-metadata.json").facts == {"chip": "TPU v5e", "chips_of_host": 4}
    assert files(tmp_path, CONFIG, "config.yaml").facts == {
        "chip": "Tesla T4",
        "chips_of_host": 2,
        "per_device_batch_size": 4,
        "gradient_accumulation_steps": 2,
    }


@pytest.mark.parametrize("data", ["{}", '{"_step": 1}', '{"_step": 1, "_runtime": ', "a: {desc: 1, value: 2}", "[]"])
def test_what_is_no_file_of_a_run(tmp_path, data):
    source = source_of(tmp_path, data, "config.yaml")
    assert wandb_files.sniff(source) in (0, 0.9)
    with pytest.raises(InputError):
        read(wandb_files, source)


def test_neighbours_are_left_alone(tmp_path):
    for data in ("step,dp_rank,stage,optype,start_ts,duration\n1,0,0,x,0,1\n", "a,b\n1,2\n", "Step - a,b - c\n1,2\n"):
        assert wandb_history.sniff(source_of(tmp_path, data)) == 0
    assert wandb_history.sniff(source_of(tmp_path, parquet({"step": [1]}))) == 0
    assert pipeline_trace.sniff(source_of(tmp_path, API)) == hf_trainer.sniff(source_of(tmp_path, API)) == 0
    for data in (
        '{"startedAt": "", "gpu": "H100"}',
        '{"step": 1, "data": {}}',
        '{"model_type": "llama", "vocab_size": 1}',
        "training:\n  steps: 1\n",
    ):
        assert wandb_files.sniff(source_of(tmp_path, data)) == 0


def test_a_log_that_names_the_client_of_wandb_is_no_configuration(tmp_path):
    losses = "".join(f"{{'loss': {3 - n / 100}, 'grad_norm': 1.2, 'epoch': {n / 100}}}\n" for n in range(1, 40))
    for begin in ("torch_version: 2.4.0\nwandb_version: 0.17.5\n", f"Python 3.11\n{CONFIG}"):
        log = source_of(tmp_path, f"{begin}  0%|   | 0/100 [00:00<?, ?it/s]\n{losses}", "train.log")
        assert wandb_files.sniff(log) == 0 < hf_trainer.sniff(log)
    for begin in ("# of a sweep\n", "---\n", "\ufeff", "_attn: {value: 1}\n"):
        assert wandb_files.sniff(source_of(tmp_path, begin + CONFIG, "config.yaml")) == 0.9


def test_a_folder_of_a_run_tells_everything_once(tmp_path):
    at = tmp_path / "run-20231114_000000-abc"
    (at / "files").mkdir(parents=True)
    (at / "logs").mkdir()
    (at / "run-abc.wandb").write_bytes(wandb_runs.framed(*test_wandb_log.RUN))
    (at / "files" / "output.log").write_text(test_hf_trainer.RUN)
    (at / "files" / "wandb-summary.json").write_text(SUMMARY)
    (at / "files" / "wandb-metadata.json").write_text(METADATA)
    (at / "files" / "config.yaml").write_text(CONFIG)
    (at / "logs" / "debug.log").write_text("2023-11-14 00:00:00,000 ERROR MainThread:1 Connection refused\n")
    store = Store(tmp_path / "store")
    (tmp_path / "all").mkdir()
    at.rename(tmp_path / "all" / at.name)
    (tmp_path / "all" / "debug.log").symlink_to(f"{at.name}/logs/debug.log")
    told = ingest([tmp_path / "all"], store)
    assert sorted(f.name for f in told.files if f.state == "left_out") == [
        "debug.log",
        f"{at.name}/files/output.log",
        f"{at.name}/files/wandb-summary.json",
        f"{at.name}/logs/debug.log",
    ]
    run = store.get(told.run_id)
    assert told.tables["steps"] == 29 and run is not None and len(run.manifest.sources) == 3


def test_a_log_beside_the_folder_of_a_run_is_the_jobs_own(tmp_path):
    (tmp_path / "tracked").mkdir()
    (tmp_path / "tracked" / "run-abc.wandb").write_bytes(wandb_runs.framed(*test_wandb_log.RUN))
    (tmp_path / "debug.log").write_text("2023-11-14 00:00:00,000 RuntimeError: CUDA error: misaligned address\n")
    (tmp_path / "tracked" / "output.log").write_text(
        "2023-11-14 00:00:00,000 RuntimeError: CUDA error: misaligned address\n2\n"
    )
    told = ingest([tmp_path], Store(tmp_path / "store"))
    assert [f.name for f in told.files if f.state == "left_out"] == []
