"""What a run is made of: what gives another answer is another run, what gives the same is the same."""

import contextlib
import json
import random
from math import inf
from pathlib import Path

import pytest

from collectors import COLLECTORS
from collectors.base import Fact, Rows, Source
from collectors.ingest import ingest
from collectors.ingesting import identity
from collectors.ingesting.identity import BY_DATE_ALONE, told_by_name
from collectors.ingesting.order import begins, natural
from collectors.serving.vllm_bench.check import differences
from errors import InputError
from runs.registry import Registry
from runs.store import Store
from runs.tables import frame
from tests.collectors.ingesting import LOG
from tests.collectors.test_goodput_log import A_JOB, lines
from tests.collectors.wandb_runs import STDOUT, ended, framed, history, output, started
from tests.runs.test_store import without_marks


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def part(first, count=10, loss="2.000"):
    return "Config param model_name: llama2-7b\n" + "".join(
        f"completed step: {n}, seconds: 1.{n:03}, TFLOP/s/device: 100.000, loss: {loss}\n"
        for n in range(first, first + count)
    )


def steps_of(store, run_id):
    return frame(store.get(run_id).tables, "steps")["step"].tolist()


def test_undated_logs_are_read_in_the_order_of_their_steps_whatever_their_names(tmp_path, store):
    """Under the first names the later part would have been read first, and under the id of the other."""
    one = ingest([put(tmp_path / "one", {"b.log": part(0), "a.log": part(10)})], store)
    other = ingest([put(tmp_path / "other", {"a.log": part(0), "b.log": part(10)})], store)
    assert steps_of(store, one.run_id) == list(range(20)) and other.existed and other.run_id == one.run_id


def test_dated_logs_are_read_in_the_order_of_their_times_whatever_their_names(tmp_path, store):
    def dated(hour, first):
        return "".join(
            f"I0304 {hour}:00:{n:02}.000000 1 log.py:1] {line}\n" for n, line in enumerate(part(first).splitlines())
        )

    rotated = {"train_20260304.log": dated(12, 10), "train_20260304.log.1": dated(11, 0)}
    done = ingest([put(tmp_path / "rotated", rotated)], store)
    assert steps_of(store, done.run_id) == list(range(20))


def test_where_only_names_order_another_order_is_another_run(tmp_path, store):
    one = ingest([put(tmp_path / "one", {"a.log": part(0, 5), "b.log": part(0, 7)})], store)
    other = ingest([put(tmp_path / "other", {"b.log": part(0, 5), "a.log": part(0, 7)})], store)
    assert steps_of(store, one.run_id) != steps_of(store, other.run_id) and one.run_id != other.run_id
    renamed = ingest([put(tmp_path / "third", {"attempt 2.log": part(0, 5), "attempt 10.log": part(0, 7)})], store)
    assert renamed.existed and renamed.run_id == one.run_id, "2 comes before 10"


def test_files_given_in_any_order_are_one_run(tmp_path, store):
    put(tmp_path, {"x/train.log": part(0), "y/train.log": part(0, 12), "z/goodput.jsonl": lines(A_JOB)})
    paths = [tmp_path / "x" / "train.log", tmp_path / "y" / "train.log", tmp_path / "z"]
    first = ingest(paths, store)
    for _ in range(5):
        random.Random(1).shuffle(paths)
        again = ingest(paths, store)
        assert again.existed and again.run_id == first.run_id


def test_a_date_in_a_name_is_another_run_where_it_tells_the_year(tmp_path, store):
    text = "Mar  4 12:00:01 host kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
    told = {name: ingest([put(tmp_path / name, {name: text})], store) for name in ("dmesg.log", "dmesg_20260304.log")}
    bare, dated = told.values()
    assert any("nor the file's name gives a year" in w for w in bare.warnings)
    assert not dated.existed and dated.run_id != bare.run_id
    assert not any("gives a year" in w for w in dated.warnings)
    assert frame(store.get(dated.run_id).tables, "evidence")["ts_ns"].notna().all()
    assert ingest([put(tmp_path / "more", {"dmesg of rack 7_20260304.log": text})], store).existed


def test_a_run_of_wandb_under_another_name_is_one(tmp_path, store):
    def of(name):
        (tmp_path / name).write_bytes(framed(started(1_700_000_000), history(1, 1_700_000_010, loss=2.0)))
        return ingest([tmp_path / name], store)

    assert not of("run-abc.wandb").existed and of("best of them.wandb").existed


def test_heads_tell_when_and_where_a_file_begins(tmp_path):
    def of(text):
        (tmp_path / "x").write_bytes(text if isinstance(text, bytes) else text.encode())
        return begins(Source(tmp_path / "x", "x"))

    never = float("inf")
    assert of("") == of("hello\n") == of(b"2026-03-04 12:00:00\0 step: 1") == (never, never)
    assert of("2026-03-04 12:00:00 a\n2026-03-04 11:00:00 b\n")[0] == 1_772_625_600 * 10**9
    entries = '{"timestamp": "2026-03-04T12:00:10Z"}\n{"timestamp": "2026-03-04T12:00:00Z"}'
    assert of(entries)[0] == of(':::MLLOG {"time_ms": 1772625600000, "event_type": "x"}')[0] == 1_772_625_600 * 10**9
    assert of(" [x] iteration       12/  100 | consumed")[1] == 12 and of("global_step: 7, x")[1] == 7
    assert of('{"step": 40, "loss": 1}')[1] == 40 and of("Config param steps: 50\nstep 1.5")[1] == never
    assert of("9" * 5000 + " step: " + "9" * 5000)[1] == never


def test_names_are_sorted_with_their_numbers_as_numbers():
    names = ["a10", "a2", "a02", "a", "b1", "a" + "9" * 5000]
    assert sorted(names, key=natural) == ["a", "a2", "a02", "a10", "a" + "9" * 5000, "b1"]


def test_what_names_tell_to_readers_of_logs_is_at_most_the_year(tmp_path):
    """A reader on the list that came to take more of a name than its date would give two answers under one id."""
    names = {c.NAME for c in COLLECTORS}
    assert names >= BY_DATE_ALONE >= {"wandb_log", "slurm_sacct"}
    run = framed(started(1.7e9), history(1, 1.7e9 + 60, train__loss=2.5), output(STDOUT, 1.7e9, LOG), ended(0, 90))
    lost = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
    samples = {"maxtext": LOG, "goodput_log": lines(A_JOB), "job_log": lost, "wandb_log": run}
    for collector in COLLECTORS:
        if collector.NAME in samples:
            assert (
                len(
                    {
                        _content(collector, tmp_path, samples[collector.NAME], name)
                        for name in ("train.log", "rank_3.log", "host-7/attempt_2.log", "2/train.log")
                    }
                )
                == 1
            )
    assert told_by_name("maxtext", "a/rank_3.log") is None
    assert told_by_name("wandb_log", "run-5/run-5.wandb") is None
    assert told_by_name("tables", "steps.parquet") == "steps.parquet"
    assert told_by_name("vllm_log", "x-2026-03-04.log") == ["2026-03-04"]


def _content(collector, folder, text, name):
    (folder / "input").write_bytes(text if isinstance(text, bytes) else text.encode())
    told = []
    for item in collector.read(Source(folder / "input", name)):
        if isinstance(item, Rows):
            columns = [c for c in item.batch.schema.names if c != "source"]
            told.append(str(item.batch.select(columns).to_pylist()))
        elif isinstance(item, Fact):
            told.append(f"{item.name}={item.value}")
    return "\n".join(told)


# Reading anew


def test_an_input_is_read_anew_under_its_id_with_its_name_notes_and_tags(tmp_path, store):
    folder = put(tmp_path / "in", {"train.log": LOG})
    registry = Registry(store.root / "registry.db")
    first = ingest([folder], store, name="mine", tags={"team": "x"})
    registry.note(first.run_id, "a remark")
    registry.tag(first.run_id, "more", "y")
    created = store.get(first.run_id).manifest.created_ns
    again = ingest([folder], store, again=True)
    run = store.get(first.run_id)
    assert (again.run_id, again.existed, again.replaced) == (first.run_id, False, True)
    assert run.manifest.created_ns > created and (run.manifest.name, run.manifest.tags) == ("mine", {"team": "x"})
    assert registry.extras(run.run_id).notes == ["a remark"] and registry.extras(run.run_id).tags == {"more": "y"}
    assert len(store.ids()) == 1 and not list((store.root / "partial").iterdir())
    named = ingest([folder], store, again=True, name="other", tags={"b": "c"})
    run = store.get(named.run_id)
    assert (run.manifest.name, run.manifest.tags) == ("other", {"team": "x", "b": "c"})


def test_with_nothing_stored_before_reading_anew_is_reading(tmp_path, store):
    done = ingest([put(tmp_path / "in", {"train.log": LOG})], store, again=True)
    assert not done.existed and not done.replaced


def test_what_another_version_read_is_told_and_read_anew(tmp_path, store, monkeypatch):
    folder = put(tmp_path / "in", {"train.log": LOG})
    with monkeypatch.context() as patch:
        patch.setattr("collectors.ingest.readers", lambda: "of before")
        first = ingest([folder], store)
    same = ingest([folder], store)
    assert same.existed and any(
        "another version of Chipledger read it; `chipledger ingest --again`" in w for w in same.warnings
    )
    again = ingest([folder], store, again=True)
    assert again.run_id == first.run_id and not any("another version" in w for w in ingest([folder], store).warnings)
    assert len(identity.readers()) == 16


def test_a_run_stored_under_an_id_of_content_alone_is_found_and_read_anew_there(tmp_path, store):
    """As earlier versions made ids."""
    folder = put(tmp_path / "in", {"a.log": LOG, "b.jsonl": lines(A_JOB)})
    done = ingest([folder], store)
    old_id = identity._short_hash([sorted(s["sha256"] for s in store.get(done.run_id).manifest.sources), {}])
    run = store.get(done.run_id)
    without_marks(run)
    told = json.loads((run.folder / "run.json").read_text())
    (run.folder / "run.json").write_text(json.dumps({**told, "run_id": old_id}))
    run.folder.rename(store.runs_folder / old_id)
    found = ingest([folder], store)
    assert found.existed and found.run_id == old_id and any("--again" in w for w in found.warnings)
    again = ingest([folder], store, again=True)
    assert again.run_id == old_id and store.ids() == [old_id] and store.get(old_id).files.unmarked == []
    renamed = ingest([put(tmp_path / "other", {"a_20260304.log": LOG, "b.jsonl": lines(A_JOB)})], store)
    assert not renamed.existed


@pytest.mark.parametrize("damage", ["manifest", "no manifest", "table", "no table"])
@pytest.mark.parametrize("again", [True, False])
def test_a_damaged_run_is_read_anew(tmp_path, store, damage, again):
    folder = put(tmp_path / "in", {"train.log": LOG})
    run = store.get(ingest([folder], store, name="mine").run_id)
    path = run.folder / "run.json" if "manifest" in damage else run.tables.path("steps")
    path.unlink() if damage.startswith("no ") else path.write_bytes(path.read_bytes()[:-1] + b"x")
    done = ingest([folder], store, again=again)
    assert done.run_id == run.run_id and done.replaced and "was damaged, and was read anew" in done.warnings[0]
    assert store.look().broken == {} and steps_of(store, run.run_id) == list(range(10))
    assert store.get(run.run_id).manifest.name == ("in" if "manifest" in damage else "mine")


def test_an_input_that_cannot_be_read_anew_leaves_what_is_stored(tmp_path, store, monkeypatch):
    folder = put(tmp_path / "in", {"train.log": LOG})
    first = ingest([folder], store)

    def fail(source):
        raise InputError("no longer understood", where=source.name)
        yield

    monkeypatch.setattr("collectors.training.maxtext.read", fail)
    with pytest.raises(InputError, match="no longer understood"):
        ingest([folder], store, again=True)
    assert steps_of(store, first.run_id) == list(range(10)) and not list((store.root / "partial").iterdir())


def test_a_fact_of_400_digits_is_passed_over(tmp_path, store, monkeypatch):
    def read(source):
        yield Rows("steps", next(iter(maxtext(source))).batch)
        yield Fact("model", {"layers": 10**400})

    from collectors.training.maxtext import read as maxtext

    monkeypatch.setattr("collectors.training.maxtext.read", read)
    done = ingest([put(tmp_path / "in", {"train.log": LOG})], store)
    assert "train.log: model: a number that 64 bits do not hold, passed over" in done.warnings


DIGITS = ["9" * 400, "9" * 5000]


@pytest.mark.parametrize("digits", DIGITS, ids=[400, 5000])
def test_numbers_of_any_length_are_passed_over_by_readers_too(tmp_path, digits):
    """JSON sets no limit to them; floats, 64 bits and Python's own reading of numbers do."""
    series = f'vllm:cache_config_info{{block_size="{digits}",num_gpu_blocks="{digits}"}} 1.0\n'
    files = {
        "pipeline_trace": (f"tp_size: 1\npp_size: 4\nworld_size: {digits}\n", "meta-ST.yaml"),
        "prometheus": (f"vllm:num_requests_running 1.0\n{series}", "metrics.prom"),
        "sidecar": (f'{{"chips": {digits}}}', "chipledger.json"),
        "goodput_log": (lines(A_JOB).replace('"step_count": 1,', f'"step_count": {digits},'), "goodput.jsonl"),
        "maxtext": (LOG.replace("step: 3,", f"step: {digits},"), "train.log"),
    }
    for collector in COLLECTORS:
        if collector.NAME in files:
            text, name = files[collector.NAME]
            (tmp_path / "input").write_text(text)
            with contextlib.suppress(InputError):
                list(collector.read(Source(tmp_path / "input", name)))
    assert list(differences({"completed": int("9" * 400)}, {"completed": 3.0})) == [("completed", inf, 3.0)]
    assert list(differences({"completed": -int("9" * 400)}, {"completed": 3.0})) == [("completed", -inf, 3.0)]


def test_a_file_that_is_written_to_while_it_is_read_takes_no_other_inputs_id(tmp_path, store):
    """Else what it held before, ingested later, would be "already stored" with more steps than it has."""
    lines = [f"completed step: {n}, seconds: 1.0, TFLOP/s/device: 100.0, loss: 2.0\n" for n in range(20)]
    log = tmp_path / "job.log"
    log.write_text("".join(lines[:8]))

    def grow(*_):
        if log.read_text().count("\n") == 8:
            log.write_text("".join(lines))

    grown = ingest([log], store, progress=grow)
    assert any(w.startswith("job.log: was written to while it was read") for w in grown.warnings)
    log.write_text("".join(lines[:8]))
    rested = ingest([log], store)
    assert not rested.existed and rested.tables["steps"] == 8 and rested.run_id != grown.run_id
    assert not any("was written to" in w for w in rested.warnings)

    assert ingest([log], store, again=True, progress=grow).run_id not in (rested.run_id, grown.run_id)
    assert store.get(rested.run_id).tables.rows("steps") == 8
