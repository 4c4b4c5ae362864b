"""From files to a run: what is found, what is refused, what wins, and that a run is there whole or not at all."""

import gzip
import json
import multiprocessing
import os
import random
import resource
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import COLLECTORS, maxtext
from collectors import ingest as module
from collectors.gather import Cancelled
from collectors.ingest import ingest
from errors import InputError
from runs.schema import SCHEMAS
from runs.store import Store
from runs.tables import frame
from tests.collectors.test_goodput_log import A_JOB, lines, step
from tests.collectors.test_maxtext_metrics import record
from tests.fuzz.damage import damaged

LOG = "Config param model_name: llama2-7b\n" + "".join(
    f"completed step: {n}, seconds: 1.{n:03}, TFLOP/s/device: 100.000, loss: 2.000\n" for n in range(10)
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "inputs"
    path.mkdir()
    return path


def nothing_stored(store):
    return store.ids() == [] and list((store.root / "partial").iterdir()) == []


def test_a_file_becomes_a_run(store, folder):
    path = folder / "train.log.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    done = ingest([path], store)
    run = store.get(done.run_id)
    assert not done.existed and done.tables == {"steps": 10} == run.manifest.tables
    assert list(frame(run.tables, "steps")["step"]) == list(range(10))
    assert (run.manifest.name, run.manifest.kind) == ("train", "training")
    assert run.manifest.facts["model"].value == "llama2-7b" and run.manifest.facts["model"].source == "train.log.gz"
    [source] = run.manifest.sources
    assert (source["name"], source["bytes"], source["collector"]) == ("train.log.gz", path.stat().st_size, "maxtext")
    assert list((store.root / "partial").iterdir()) == []


def test_the_same_input_twice_is_one_run_and_options_make_another(store, folder):
    (folder / "a.log").write_text(LOG)
    (folder / "b.jsonl").write_text(lines(A_JOB))
    first = ingest([folder], store)
    created = store.get(first.run_id).manifest.created_ns
    again = ingest([folder / "b.jsonl", folder / "a.log"], store)
    assert again.existed and (again.run_id, again.tables) == (first.run_id, first.tables)
    assert store.get(first.run_id).manifest.created_ns == created
    assert again.warnings == first.warnings
    assert ingest([folder], store, chips=4).run_id != first.run_id
    assert len(store.ids()) == 2
    named = ingest([folder], store, name="another", tags={"a": "b"})
    assert named.existed and named.run_id == first.run_id
    assert any("stored already" in w for w in named.warnings)


def test_a_folder_of_several_formats_is_one_run(store, folder):
    (folder / "logs").mkdir()
    (folder / "logs" / "train.log").write_text(LOG)
    (folder / "goodput.json").write_text(json.dumps(A_JOB))
    (folder / "metrics_step_000000_to_step_000001.txt").write_text(json.dumps(record(0)) + "\n")
    (folder / "README.md").write_text("# hello")
    (folder / ".hidden.log").write_text(LOG)
    (folder / ".git").mkdir()
    (folder / ".git" / "train.log").write_text(LOG)
    done = ingest([folder], store)
    run = store.get(done.run_id)
    assert [(s["name"], s["collector"]) for s in run.manifest.sources] == [
        ("goodput.json", "goodput_log"), ("logs/train.log", "maxtext"),
        ("metrics_step_000000_to_step_000001.txt", "maxtext_metrics"),
    ]  # fmt: skip
    assert done.tables["steps"] == 4 + 10 + 1
    assert "not recognised, passed over: README.md" in done.warnings
    assert run.manifest.name == "inputs"


def test_the_command_line_beats_the_sidecar_beats_the_log(store, folder):
    (folder / "train.log").write_text(LOG)
    (folder / "chipledger.json").write_text(json.dumps(
        {"name": "mine", "kind": "rl", "chip": "v5e", "model": "mistral-7b", "chips": 8, "tags": {"a": "1", "b": "2"}}
    ))  # fmt: skip
    sidecar = store.get(ingest([folder], store).run_id).manifest
    assert (sidecar.name, sidecar.kind, sidecar.tags) == ("mine", "rl", {"a": "1", "b": "2"})
    assert (sidecar.fact("model"), sidecar.fact("chips"), sidecar.facts["chips"].basis) == ("mistral-7b", 8, "declared")
    assert not {"name", "kind", "tags"} & set(sidecar.facts)
    said = store.get(
        ingest([folder], store, name="said", kind="training", chips=16, tags={"b": "3"}, model="x").run_id
    ).manifest
    assert (said.name, said.kind, said.tags) == ("said", "training", {"a": "1", "b": "3"})
    assert (said.fact("chips"), said.fact("chip"), said.fact("model")) == (16, "v5e", "x")
    assert said.facts["chips"].source == "command line"


def test_files_that_contradict_each_other_are_noticed(store, folder):
    (folder / "a.log").write_text(LOG)
    (folder / "b.log").write_text(LOG.replace("llama2-7b", "llama2-70b"))
    done = ingest([folder], store)
    assert store.get(done.run_id).manifest.fact("model") == "llama2-7b"
    assert any("a.log says 'llama2-7b', b.log says 'llama2-70b'" in w for w in done.warnings)
    assert not any("says" in w for w in ingest([folder], store, model="llama2-7b").warnings)


def test_a_copy_of_a_file_counts_once(store, folder):
    (folder / "a.log").write_text(LOG)
    (folder / "copy of a.log").write_text(LOG)
    done = ingest([folder], store)
    assert done.tables == {"steps": 10}
    assert "copy of a.log: the same bytes as a.log, read once" in done.warnings


def test_two_files_of_one_name(store, folder):
    for sub in ("x", "y"):
        (folder / sub).mkdir()
        (folder / sub / "train.log").write_text(LOG + sub)
    done = ingest([folder / "x" / "train.log", folder / "y" / "train.log"], store)
    assert [s["name"] for s in store.get(done.run_id).manifest.sources] == ["2/train.log", "train.log"]


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>.log", "a\nb.log", "r\x1b[2Jm.log", "é日本.log"])
def test_a_name_is_just_a_name(store, folder, name):
    (folder / name).write_text(LOG + "completed step: 101, ...\n")
    done = ingest([folder / name], store)
    run = store.get(done.run_id)
    shown = run.manifest.sources[0]["name"]
    assert shown.isprintable() and done.warnings[0].startswith(shown)
    assert frame(run.tables, "steps")["source"][0] == shown
    if name.isprintable():
        assert shown == name


def test_a_name_that_is_no_text(store, folder):
    path = os.fsencode(folder) + b"/\xff\xfe.log"
    Path(os.fsdecode(path)).write_text(LOG)
    done = ingest([folder], store)
    assert store.get(done.run_id).manifest.sources[0]["name"] == r"\udcff\udcfe.log"


# What is refused, leaving the store as it was


@pytest.mark.parametrize("content", [None, "", "hello\n", b"\0" * 100, b"\x1f\x8b\x08broken"])
def test_nothing_known_is_refused_with_the_formats_that_are(store, folder, content):
    if content is not None:
        (folder / "x.bin").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match="no file of a known format") as error:
        ingest([folder], store)
    assert all(f"{c.NAME}: " in str(error.value) for c in COLLECTORS) and "\n" not in str(error.value)
    assert nothing_stored(store)


def test_paths_that_are_nothing(store, folder):
    for path in (folder / "gone", Path("/dev/null"), folder / ("x" * 300), "a\0b"):
        with pytest.raises(InputError, match="no such file|neither a file"):
            ingest([path], store)
    with pytest.raises(InputError, match="nothing was given"):
        ingest([], store)
    assert nothing_stored(store)


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"kind": "trainign"}, "command line: kind is 'trainign'.*Did you mean 'training'"),
        ({"chips": 0}, "chips is 0; expected a whole number"),
        ({"chips": True}, "chips is True"),
        ({"name": ""}, "name is ''"),
        ({"tags": {"a": ""}}, "tags is an object; expected an object of text by text"),
    ],
)
def test_wrong_options(store, folder, option, reason):
    (folder / "a.log").write_text(LOG)
    with pytest.raises(InputError, match=reason):
        ingest([folder], store, **option)
    assert nothing_stored(store)


def test_a_wrong_sidecar_is_refused_even_beside_good_logs(store, folder):
    (folder / "a.log").write_text(LOG)
    (folder / "chipledger.json").write_text('{"chpis": 4}')
    with pytest.raises(InputError, match="chipledger.json: unknown key 'chpis'.*Did you mean 'chips'"):
        ingest([folder], store)
    assert nothing_stored(store)


def test_a_sidecar_alone_is_no_run(store, folder):
    (folder / "chipledger.json").write_text('{"chips": 4}')
    with pytest.raises(InputError, match="no file of a known format"):
        ingest([folder], store)


def test_an_unreadable_file_costs_a_warning_among_others_and_the_run_if_alone(store, folder):
    cut = folder / "cut.log.gz"
    cut.write_bytes(gzip.compress((LOG + random.Random(1).randbytes(200_000).hex()).encode())[:150_000])
    with pytest.raises(InputError, match="cut.log.gz: cannot be read beyond byte [0-9,]+ .*end-of-stream"):
        ingest([cut], store)
    assert nothing_stored(store)
    (folder / "good.log").write_text(LOG.replace("loss: 2", "loss: 3"))
    done = ingest([folder], store)
    assert any(w.startswith("cut.log.gz: cannot be read beyond byte") for w in done.warnings)
    assert done.tables["steps"] >= 10


def test_what_was_read_before_the_fault_is_kept_and_said(store, folder, monkeypatch):
    monkeypatch.setattr("collectors.textlog.BATCH_ROWS", 5)
    body = LOG.encode() + b"\n" * 100_000 + random.Random(1).randbytes(3_000_000).replace(b"\n", b" ")
    (folder / "cut.log.gz").write_bytes(gzip.compress(body)[:-100_000])
    (folder / "good.log").write_text(LOG.replace("loss: 2", "loss: 3"))
    done = ingest([folder], store)
    assert done.tables["steps"] == 20
    assert any("What was read before that is kept." in w for w in done.warnings)


def test_flipped_bits_in_a_gzip_stream(store, folder):
    packed = bytearray(gzip.compress(LOG.encode() * 50))
    for at in range(10, len(packed), 23):
        data = packed.copy()
        data[at] ^= 0x10
        (folder / "x.log.gz").write_bytes(data)
        with pytest.raises(InputError):
            ingest([folder], store)
        assert nothing_stored(store)


def bomb(path, head, filling):
    """10 GiB of `filling` after `head` in about 10 MB: gzip members, one after another."""
    member = gzip.compress(filling * (1 << 26), 6)
    with path.open("wb") as f:
        f.write(gzip.compress(head))
        for _ in range(160):
            f.write(member)


@pytest.mark.parametrize(
    ("head", "filling", "reason"),
    [
        (b"", b"\0", "no file of a known format"),
        (LOG.encode() * 100, b"\0", "x.log.gz: (a line longer|unpacks to more) than"),
        (LOG.encode(), b"\n", "x.log.gz: unpacks to more than 200 times its size"),
        (lines(A_JOB).encode(), b" ", "x.log.gz: unpacks to more than 200 times its size"),
    ],
)
def test_ten_gigabytes_of_nothing_are_refused_at_once(store, folder, head, filling, reason):
    bomb(folder / "x.log.gz", head, filling)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(InputError, match=reason):
        ingest([folder], store)
    assert time.monotonic() - began < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB
    assert nothing_stored(store)


# How it goes: progress, cancelling, failing disks, being killed


def test_progress_reaches_the_end(store, folder, monkeypatch):
    monkeypatch.setattr("collectors.textlog.BATCH_ROWS", 100)
    for name in ("a.log", "b.log"):
        (folder / name).write_text(name + LOG * 2_000)
    told = []
    done = ingest([folder], store, progress=lambda *args: told.append(args))
    total = sum(p.stat().st_size for p in folder.iterdir())
    assert {t for _, t, _ in told} == {total}
    assert [d for d, _, _ in told] == sorted(d for d, _, _ in told) and told[-1] == (total, total, "stored")
    assert len({d for d, _, what in told if what == "a.log"}) > 10
    assert done.tables["steps"] == 40_000


def test_cancelling_at_any_moment_leaves_nothing(store, folder):
    (folder / "a.log").write_text(LOG)
    (folder / "b.json").write_text(json.dumps(A_JOB))
    asked = 0

    def count():
        nonlocal asked
        asked += 1
        return False

    ingest([folder], store, chips=1, cancel=count)  # a run of its own, to count the questions
    for moment in range(asked):
        left = iter([False] * moment + [True] * 1000)
        with pytest.raises(Cancelled, match="cancelled; nothing was stored"):
            ingest([folder], store, cancel=lambda left=left: next(left))
        assert len(store.ids()) == 1 and list((store.root / "partial").iterdir()) == []


def test_a_full_disk_is_said_and_leaves_nothing(store, folder, monkeypatch):
    (folder / "a.log").write_text(LOG)

    def full(self, table, batch):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("runs.store.RunWriter.rows", full)
    with pytest.raises(InputError, match="the run cannot be written .*No space left.*disk full"):
        ingest([folder], store)
    assert nothing_stored(store)


def test_a_defect_of_ours_is_not_hidden_and_leaves_nothing(store, folder, monkeypatch):
    (folder / "a.log").write_text(LOG)

    def broken(source):
        yield from list(maxtext_read(source))
        raise ZeroDivisionError

    maxtext_read = maxtext.read
    monkeypatch.setattr(maxtext, "read", broken)
    with pytest.raises(ZeroDivisionError):
        ingest([folder], store)
    assert nothing_stored(store)


def test_the_reader_is_never_far_ahead_of_the_writer(store, folder, monkeypatch):
    (folder / "a.log").write_text(LOG)
    produced = written = furthest = 0
    batch = SCHEMAS["steps"].batch({"step": pa.array([1])})

    def many(source):
        nonlocal produced, furthest
        for _ in range(200):
            produced += 1
            furthest = max(furthest, produced - written)
            yield module.Rows("steps", batch)

    def slow(self, table, rows):
        nonlocal written
        time.sleep(0.001)
        written += 1

    monkeypatch.setattr(maxtext, "read", many)
    monkeypatch.setattr("runs.store.RunWriter.rows", slow)
    ingest([folder], store)
    assert written == 200 and furthest <= module._QUEUED + 3


@pytest.mark.parametrize(
    ("tables", "kind"),
    [({"requests": 3}, "serving"), ({"engine": 1}, "serving"), ({"requests": 3, "ops": 1}, "serving"),
     ({"requests": 3, "steps": 1}, "training"), ({"ops": 1}, "training"), ({"stages": 1}, "serving")],
)
def test_the_kind_follows_from_the_tables(tables, kind):
    assert module._kind(tables) == kind


def _ingest_in_a_child(root, folder):
    ingest([folder], Store(root))


def test_killed_at_any_moment_the_run_is_there_whole_or_not_at_all(tmp_path, folder):
    entries = "".join(lines([step(i, i)]) for i in range(20_000))
    (folder / "goodput.jsonl").write_text(entries)
    with gzip.open(folder / "train.log.gz", "wt", compresslevel=1) as f:
        f.write(LOG * 2_000)
    root = tmp_path / "store"
    clean = multiprocessing.get_context("forkserver")  # a child of this process could inherit a lock of its threads
    clean.set_forkserver_preload([__name__])
    began = time.monotonic()
    whole = ingest([folder], Store(tmp_path / "another"))
    takes = time.monotonic() - began
    outcomes = set()
    rng = random.Random(7)
    for moment in [*(rng.uniform(0, 1.1) for _ in range(12)), 20]:
        child = clean.Process(target=_ingest_in_a_child, args=(root, folder))
        child.start()
        child.join(moment * takes)
        child.kill()
        child.join()
        store = Store(root)
        assert list((root / "partial").iterdir()) == []
        outcomes.add(len(store.ids()))
        if store.ids():
            run = store.get(whole.run_id)
            assert run.manifest.tables == whole.tables
            assert {t: run.tables.rows(t) for t in whole.tables} == whole.tables
            assert len(frame(run.tables, "steps")) == whole.tables["steps"]
            run.folder.rename(tmp_path / f"seen-{moment}")
    assert outcomes == {0, 1}


@settings(max_examples=60, deadline=None)
@given(data=damaged([LOG.encode(), gzip.compress(LOG.encode()), lines(A_JOB).encode(), gzip.compress(b"\n")]))
def test_damaged_files_are_stored_or_refused(data, tmp_path_factory):
    base = tmp_path_factory.mktemp("damaged")
    (base / "x.log").write_bytes(data)
    store = Store(base / "store")
    try:
        done = ingest([base / "x.log"], store)
        assert store.get(done.run_id).manifest.tables == done.tables
    except InputError:
        assert nothing_stored(store)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_long_lists_of_names_are_cut(names):
    assert module._listed(names) == ", ".join(names)
    assert module._listed([*"abcdefghijkl"]).endswith("j and 2 more")
