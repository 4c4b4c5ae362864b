"""From files to a run: what is found, what is refused, and what wins."""

import contextlib
import gzip
import json
import os
import random
import resource
import time
from pathlib import Path

import pytest

from collectors.ingest import ingest
from errors import InputError
from runs.tables import frame
from tests.collectors.goodput_entries import step
from tests.collectors.ingesting import LOG, nothing_stored
from tests.collectors.test_goodput_log import A_JOB, lines
from tests.collectors.test_maxtext_metrics import record


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
        ("goodput.json", "goodput_log"),
        ("logs/train.log", "maxtext"),
        ("metrics_step_000000_to_step_000001.txt", "maxtext_metrics"),
    ]
    assert done.tables["steps"] == 4 + 10 + 1
    said = "README.md: not recognised, passed over. Looks like a text to be read by people. It is no log."
    assert said in done.warnings
    assert run.manifest.name == "inputs"


def test_the_command_line_beats_the_sidecar_beats_the_log(store, folder):
    (folder / "train.log").write_text(LOG)
    (folder / "chipledger.json").write_text(
        json.dumps(
            {
                "name": "mine",
                "kind": "rl",
                "chip": "v5e",
                "model": "mistral-7b",
                "chips": 8,
                "tags": {"a": "1", "b": "2"},
            }
        )
    )
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


@pytest.mark.parametrize(
    ("content", "looks"),
    [
        (None, "nothing was given"),
        (b"", "an empty file"),
        (b"hello\n", "text without a line that a reader knows; expected a MaxText log, a Megatron log or a vLLM"),
        (b"\0" * 100, "a binary file of no known kind; expected an XPlane profile, a PyTorch trace or a Nsight"),
        (b"\x1f\x8b\x08broken", "a gzip file that is cut short or damaged"),
    ],
)
def test_nothing_known_is_refused_in_one_line_with_what_it_looks_like(store, folder, content, looks):
    if content is not None:
        (folder / "x.bin").write_bytes(content)
    with pytest.raises(InputError, match="no file of a known format") as error:
        ingest([folder], store)
    said = str(error.value)
    assert looks in said and "\n" not in said and len(said) < 400
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
    monkeypatch.setattr("collectors.reading.textlog.BATCH_ROWS", 5)
    body = LOG.encode() + b"\n" * 100_000 + random.Random(1).randbytes(3_000_000).replace(b"\n", b" ")
    (folder / "cut.log.gz").write_bytes(gzip.compress(body)[:-100_000])
    (folder / "good.log").write_text(LOG.replace("loss: 2", "loss: 3"))
    done = ingest([folder], store)
    assert done.tables["steps"] == 20
    assert any("What was read before that is kept." in w for w in done.warnings)


LINES_OF_STEPS = {
    "plain": lambda n, s: f"completed step: {n}, seconds: {s:.9f}, loss: {s}\n",
    "entries": lambda n, s: lines([step(n + s, n)]),
}


@pytest.mark.parametrize("form", LINES_OF_STEPS)
def test_a_packed_log_that_was_cut_off_keeps_its_last_rows_too(store, folder, form):
    noise = random.Random(1)
    packed = gzip.compress("".join(LINES_OF_STEPS[form](n, noise.random()) for n in range(1_000)).encode())
    cut, there = folder / "cut.log.gz", 0
    cut.write_bytes(packed[: len(packed) // 2])
    with contextlib.suppress(EOFError), gzip.open(cut, "rt") as f:
        for there, _ in enumerate(f, 1):  # noqa: B007
            pass
    (folder / "good.log").write_text(LOG.replace("loss: 2", "loss: 3"))
    done = ingest([folder], store)
    assert there > 300 and done.tables["steps"] - 10 in (there, there + 1)
    assert any("cut.log.gz: cannot be read beyond byte" in w and "before that is kept" in w for w in done.warnings)


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
