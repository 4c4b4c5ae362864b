"""`whatif storage`: the contract on the command line, published stores, measured runs, what cannot be asked, its
sentences, and its page."""

import contextlib
import itertools
import json
import re

import pytest

from app.cli import main
from app.pages.storage.form import EXAMPLE
from app.pages.storage.view import published_rows
from app.whatif.storage import STORAGE
from app.whatif.storage.answers import STANDS
from app.whatif.storage.cases import worked
from app.whatif.storage.wording import verdict
from app.whatif.storage.wording import words as said
from app.words import rest_of
from catalog.storage import series
from errors import QuestionError
from simulators.storage.waiting import NOBODY
from tests.app import made_runs
from tests.app.test_pages import opened, words

QUERY = {"batch": "1280", "sample_bytes": "100kB", "hosts": "4", "readers": "32", "latency_s": "0.05", "step_s": "0.3"}
PIPELINED = {
    "batch": "1000",
    "sample_bytes": "1MB",
    "hosts": "1",
    "readers": "1",
    "decode_s": "0.0008",
    "latency_s": "0",
    "host_bytes_per_s": "1e9",
    "step_s": "1.1",
    "prefetch": "1",
}


def answered(place=None, **more):
    query = {k: v for k, v in {**QUERY, **more}.items() if v is not None}
    return STORAGE.answer(STORAGE.from_query(query.items()), place)


def test_the_contract(capsys):
    arguments = [f"--{k.replace('_', '-')}={v}" for k, v in QUERY.items()]
    paid = ["--chips", "64", "--days", "10", "--usd-per-chip-hour", "2"]
    assert main(["whatif", "storage", *arguments, *paid, "--files", "1000000", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["batch_s"] == pytest.approx(0.5) and told["step_s"] == 0.3  # 320 files a host, 32 at a time, 50 ms each
    assert told["wait_s_per_step"] == pytest.approx(0.2) and told["wait_share"] == pytest.approx(0.4)
    assert told["limit"] == "latency" and told["basis"] == "modelled"
    assert told["chip_hours_waited"] == pytest.approx(0.4 * 64 * 240) and told["usd_waited"] == pytest.approx(12288)
    parts = told["parts_s"]
    assert parts.pop("latency") == pytest.approx(0.5) and set(parts.values()) == {0}
    need = told["needed"]
    assert need["readers"] == pytest.approx(320 / 6, abs=2) and need["prefetch"] is None
    assert need["store_bytes_per_s"] == pytest.approx(1280 * 1e5 / 0.3) == pytest.approx(4 * need["host_bytes_per_s"])
    assert [e["files"] for e in told["epoch"]] == [1_000_000, 782]
    assert told["epoch"][0]["read_s"] == pytest.approx(1e6 * 0.05 / 128)
    assert {"readers", "batch_s", "wait_s"} == set(told["by_readers"][0])
    assert told["verdict"].startswith(
        "Chips wait 200 ms a step for input, 40.0 % of the time (6,140 chip-hours, $12,300)."
    )
    assert main(["whatif", "storage", *arguments]) == 0
    assert "32 readers a host cannot hide the latency of requests: enough would be" in capsys.readouterr().out


def test_bytes_and_samples_of_the_job_or_of_a_host_are_the_same_batch():
    one = answered()
    for other in (
        answered(batch=None, batch_bytes="128MB"),
        answered(batch="320", per="host"),
        answered(batch=None, batch_bytes="32MB", per="host", file_bytes="100kB", sample_bytes=None),
        answered(samples_per_file="1"),
    ):
        assert other.pipe == one.pipe
    assert answered(samples_per_file="10").pipe.file_bytes == 1e6


def test_decoding_is_shared_by_decoders():
    made = answered(decode_s="0.02", decoders="8", readers="512")
    assert made.pipe.decode_s == pytest.approx(320 * 0.02 / 8) and made.limit == "decode"
    assert made.batch_s == pytest.approx(0.8, rel=0.02)
    assert "Decoding binds: enough would be 22 decoders a host, which has 8." in verdict(made)
    assert answered(decode_s="0.02", decoders="22", readers="512").limit == "nothing"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"host_bytes_per_s": "2e7"},
            "The host's network binds: enough would be 107 MB/s a host, which has 20",
        ),
        (
            {"store_bytes_per_s": "2e8"},
            "The store's bandwidth binds: enough would be 427 MB/s of the store, which",
        ),
        ({"store_requests_per_s": "2000"}, "takes bind: enough would be files of 2"),
        ({"prefetch": "0", "readers": "64"}, "Too little is fetched ahead: enough would be 1 batch ahead."),
        ({"readers": "64"}, "Nobody waits: a batch takes 250 ms, a step 300 ms."),
    ],
)
def test_the_verdict_says_what_binds_and_what_would_be_enough(change, sentence):
    made = answered(**change)
    assert sentence in verdict(made) + " ".join(rest_of(verdict(made)))


SLOW = {"batch": "1000", "sample_bytes": "1MB", "hosts": "1", "step_s": "1", "readers": "64"}


@pytest.mark.parametrize(
    ("change", "mend", "sentence"),
    [
        (
            {"readers": "4", "host_bytes_per_s": "1e7"},
            {"readers": "50", "host_bytes_per_s": "1e9"},
            "1.00 GB/s a host, which has 10.0 MB/s, and 50 readers a host, of which there are 4.",
        ),
        (
            {"store_bytes_per_s": "1e8", "host_bytes_per_s": "5e8"},
            {"store_bytes_per_s": "1e9", "host_bytes_per_s": "1e9"},
            "1.00 GB/s of the store, which has 100 MB/s, and 1.00 GB/s a host, which has 500 MB/s.",
        ),
        ({"host_bytes_per_s": "5e8"}, {"host_bytes_per_s": "1e9"}, "1.00 GB/s a host, which has 500 MB/s."),
        (
            {"decode_s": "0.2", "readers": "4"},
            {"decoders": "200", "readers": "50"},
            "200 decoders a host, which has 1, and 50 readers a host, of which there are 4.",
        ),
        (
            {"host_bytes_per_s": "5e8", "latency_p99_s": "0.5", "prefetch": "1", "readers": "80"},
            {"host_bytes_per_s": "1e9"},
            "1.00 GB/s a host, which has 500 MB/s",
        ),
    ],
)
def test_every_part_that_is_too_slow_is_named_and_enough_is_said_only_of_what_is(change, mend, sentence):
    made, mended = answered(**SLOW | change), answered(**SLOW | change | mend)
    told = verdict(made) + " ".join(rest_of(verdict(made)))
    word = "enough would be" if mended.limit == "nothing" else "it takes at least"
    assert f": {word} {sentence}" in told


@pytest.mark.parametrize("p99", [None, "0.1", "0.4"])
@pytest.mark.parametrize("step_s", ["0.1", "0.5", "0.52", "0.8"])
def test_what_the_answer_says_is_what_its_numbers_say(p99, step_s):
    made = answered(latency_p99_s=p99, step_s=step_s, prefetch="4")
    told = made.to_dict()
    json.dumps(told, allow_nan=False)
    waits = told["wait_s_per_step"] > NOBODY * told["step_s"]
    assert waits == (made.limit != "nothing") == verdict(made).startswith("Chips wait")
    assert told["wait_share"] == pytest.approx(told["wait_s_per_step"] / (told["step_s"] + told["wait_s_per_step"]))
    now = next(row for row in told["by_readers"] if row["readers"] == 32)
    assert (now["batch_s"], now["wait_s"]) == (told["batch_s"], told["wait_s_per_step"])
    least = told["needed"]["readers"]
    if waits and least is not None:
        assert f"{least:,} readers a host" in verdict(made) and least > 32
        assert answered(latency_p99_s=p99, step_s=step_s, prefetch="4", readers=str(least)).limit == "nothing"


def test_a_published_store_gives_what_is_published_of_it_and_no_more():
    made = answered(like="s3-standard", latency_s=None)
    assert (made.pipe.latency_s, made.pipe.stream_bytes_per_s) == (0.2, 85e6)
    assert made.pipe.host_bytes_per_s is None and any("100 to 200 ms" in note for note in made.notes)
    assert answered(like="s3-standard").pipe.latency_s == 0.05  # what is given holds
    fast = answered(like="parallelstore", tib="12", latency_s=None, checkpoint_bytes="1TB")
    assert fast.pipe.store_bytes_per_s == pytest.approx(12 * 1.15 * 2**30) and fast.limit == "nothing"
    assert fast.save_s == pytest.approx(1e12 / (12 * 0.5 * 2**30))
    with pytest.raises(QuestionError, match="no latency of managed-lustre-250 is known"):
        answered(like="managed-lustre-250", tib="20", latency_s=None)
    local = answered(like="gce-local-ssd", checkpoint_bytes="1TB")
    assert local.save_s == pytest.approx(1e12 / (4 * 4.68e9))


def test_a_walk_in_which_one_stands_for_several_says_so_with_and_without_a_spread():
    for p99 in (None, "0.1"):
        notes = (answered(readers=n, latency_p99_s=p99, hosts="1").notes for n in ("4", "1024"))
        assert [STANDS in of for of in notes] == [False, True]
    assert "prefetch" not in answered(**PIPELINED).limit and "Nobody waits" in verdict(answered(**PIPELINED))


def test_an_epoch_is_told_alone_where_a_large_file_would_hold_too_many_batches():
    small = {"batch": None, "sample_bytes": None, "batch_bytes": "100KB", "file_bytes": "100KB", "hosts": "1"}
    [one] = answered(**small, files="1000000").to_dict()["epoch"]
    assert one["files"] == 1_000_000 and one["list_s"] == pytest.approx(50)


def test_a_save_is_no_faster_than_the_hosts_send():
    held = {"checkpoint_bytes": "1TB", "write_bytes_per_s": "1e12"}
    assert answered(**held).save_s == 1
    assert answered(**held, host_bytes_per_s="1e9").save_s == pytest.approx(250)
    assert "--save-s 250" in str(said(answered(**held, host_bytes_per_s="1e9")).table.rows)


def fed(store, name="fed", fetch_s=0.4, step_s=1.0, chips=8):
    """Fifty steps, each of which begins with a fetch that its job's log tells."""
    n = 50
    starts = [int(made_runs.START_NS + i * step_s * 1e9) for i in range(n)]
    tables = {
        "steps": {"step": list(range(n)), "start_ns": starts, "dur_ns": [int(step_s * 1e9)] * n},
        "lifecycle": {
            "kind": ["data_loading"] * n,
            "start_ns": starts,
            "end_ns": [s + int(fetch_s * 1e9) for s in starts],
        },
    }
    return made_runs.write(store, name, tables, {"chips": chips, "chip": "TPU v5e"})


def test_a_run_brings_its_step_its_chips_and_its_fetch(place):
    fed(place.store)
    bare = {name: None for name in QUERY}
    made = answered(place, **bare, run="fed", days="1")
    assert (made.step_s, made.batch_s, made.chips) == (1.0, pytest.approx(0.4), 8)
    assert made.limit == "nothing" and made.to_dict()["basis"] == "measured"
    assert answered(place, **bare, run="fed", prefetch="0").waits.wait_s == pytest.approx(0.4)
    assert "what binds is not known" in verdict(answered(place, **bare, run="fed", prefetch="0")).lower()
    modelled = answered(place, **{**QUERY, "step_s": None}, run="fed")
    assert (modelled.step_s, modelled.batch_s) == (1.0, pytest.approx(0.5))
    assert modelled.to_dict()["measured"]["fetch_s"] == pytest.approx(0.4)
    assert ("measured fetch", "400 ms") in said(modelled).table.rows
    page = opened("pages/storage/page.py", run="fed")
    assert (
        not page.exception and "Nobody waits" not in words(page) and "step is the usual one of run fed" in words(page)
    )


READ = {"batch": "8", "sample_bytes": "1MB", "file_bytes": "2MB", "hosts": "2", "readers": "4", "latency_s": "1"}
READ |= {"latency_p99_s": "2", "stream_bytes_per_s": "1e9", "host_bytes_per_s": "1e9", "store_bytes_per_s": "1e9"}
READ |= {
    "store_requests_per_s": "9",
    "decode_s": "1",
    "decoders": "2",
    "like": "s3-standard",
    "files": "9",
    "seed": "4",
}
READ |= {"batch_bytes": "1MB", "samples_per_file": "2", "per": "host", "tib": "5"}


@pytest.mark.parametrize("name", READ)
def test_what_is_said_of_files_or_a_store_is_never_passed_over_for_what_a_run_measured(place, name):
    fed(place.store)
    bare = {name: None for name in QUERY}
    with pytest.raises(QuestionError):  # each alone is not enough for a pipe
        answered(place, **bare | {name: READ[name]}, run="fed")


def test_a_save_is_told_beside_what_a_run_measured(place):
    fed(place.store)
    bare = {name: None for name in QUERY} | {"run": "fed"}
    made = answered(place, **bare, checkpoint_bytes="1TB", write_bytes_per_s="1e9", chips="4", days="2")
    assert made.save_s == 1000 and made.pipe is None and "--save-s 1000" in str(said(made).table.rows)
    assert answered(place, **bare).save_s is None
    with pytest.raises(QuestionError, match="a checkpoint, in bytes, 'banana'"):
        answered(place, **bare, checkpoint_bytes="banana")
    with pytest.raises(QuestionError, match="a checkpoint without the store's rate"):
        answered(place, **bare, checkpoint_bytes="1TB")


def test_a_run_that_tells_no_step_is_named(place):
    made_runs.write(place.store, "bare", {"scalars": {"name": ["x"], "value": [1.0]}}, {})
    with pytest.raises(QuestionError, match="run 'bare' does not tell a step"):
        answered(place, run="bare", step_s=None)
    assert answered(place, run="bare").step_s == 0.3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step_s": None}, "nothing says how long a step takes"),
        ({"step_s": "0"}, "--step-s 0"),
        ({"batch": None}, "nothing says what a step reads"),
        ({"batch_bytes": "1MB"}, "samples and bytes of a step"),
        ({"sample_bytes": None}, "samples of a step without their size"),
        ({"sample_bytes": "1e999"}, "a sample, in bytes"),
        ({"sample_bytes": "0"}, "a sample, in bytes"),
        ({"sample_bytes": "x" * 10_000}, "a sample, in bytes, 'xxx"),
        ({"batch": "1000000000000", "sample_bytes": "1e17"}, "a batch, in bytes"),
        ({"batch": None, "batch_bytes": "1GB", "sample_bytes": None}, "how large a file is"),
        ({"file_bytes": "1MB", "samples_per_file": "4"}, "bytes and samples of a file"),
        ({"file_bytes": "1e15"}, "batches of a host each"),
        ({"latency_s": None}, "no latency is known"),
        ({"latency_s": "-1"}, "--latency-s -1"),
        ({"latency_p99_s": "0.01"}, "99th percentile"),
        ({"readers": "0"}, "readers"),
        ({"prefetch": "1000"}, "prefetch"),
        ({"hosts": "0"}, "hosts"),
        ({"per": "chip"}, "per"),
        ({"like": "s4"}, "no store 's4'"),
        ({"like": "s3-standard", "tib": "3"}, "a capacity of s3-standard"),
        ({"like": "parallelstore"}, "the capacity of parallelstore"),
        ({"tib": "3"}, "a capacity without a store"),
        ({"decoders": "4"}, "decoders without"),
        (
            {"decode_s": "1", "batch": None, "batch_bytes": "1GB", "sample_bytes": None, "file_bytes": "1MB"},
            "decoding of",
        ),
        ({"usd_per_chip_hour": "2"}, "a price without a length"),
        ({"days": "2"}, "a length of the job without chips"),
        ({"write_bytes_per_s": "1e9"}, "a rate of writing without"),
        ({"checkpoint_bytes": "1TB"}, "a checkpoint without the store's rate"),
        ({"checkpoint_bytes": "1e18", "write_bytes_per_s": "1"}, "seconds of a save"),
        ({"run": "gone"}, "no store is open"),
    ],
)
def test_what_cannot_be_asked(change, message):
    with pytest.raises(QuestionError, match=re.escape(message)):
        answered(**change)


def test_ends_of_what_may_be_given_stay_finite():
    ends = {"batch": ("1", "1000000000000"), "sample_bytes": ("1", "1MB"), "readers": ("1", "65536")}
    ends |= {"latency_s": ("0", "3600"), "prefetch": ("0", "64"), "step_s": ("1e-6", "1e6"), "hosts": ("1", "1000000")}
    answers = 0
    for values in itertools.islice(itertools.product(*ends.values()), 0, None, 5):  # of each pair of ends some
        with contextlib.suppress(QuestionError):
            made = answered(**dict(zip(ends, values, strict=True)), host_bytes_per_s="1e9")
            assert "inf" not in verdict(made) and "nan" not in verdict(made)
            json.dumps(made.to_dict(), allow_nan=False)
            answers += 1
    assert answers > 15


def test_published_readings_stand_beside_what_the_model_makes_of_them():
    direct = next(case for case in worked() if case["id"] == "gcs-direct")
    assert [row["measured_s"] for row in direct["rows"]] == [1299, 6499, 399, 1396] and direct["explained"]
    for row in direct["rows"]:
        fit = direct["fit"]
        file_s = fit["request_s"] + row["file_bytes"] / fit["stream_bytes_per_s"]
        assert row["modelled_s"] == pytest.approx(5 * row["files"] * file_s)
        assert row["error"] == pytest.approx(row["modelled_s"] / row["measured_s"] - 1)
    connector = next(case for case in worked() if case["id"] == "gcs-connector")
    assert [row["measured_s"] for row in connector["rows"]] == [515, 2058, 277, 1173] and not connector["explained"]
    assert len(published_rows()) == sum(len(one.rows) for one in series())
    batch = next(case for case in worked() if case["id"] == "batch-32mb")
    assert batch["fit"] is batch["explained"] is None and batch["rows"][0]["measured_s"] == 0.25


def test_the_page(place):
    page = opened("pages/storage/page.py")
    assert not page.exception and "Chips wait" in words(page) and "An example" in words(page)
    assert {m.label.rsplit(" ", 1)[0] for m in page.metric} >= {"Input wait a step", "Time per batch"}
    asked = opened("pages/storage/page.py", **QUERY, over="file size")
    assert not asked.exception and "40.0 % of the time" in words(asked) and "An example" not in words(asked)
    refused = opened("pages/storage/page.py", **{**EXAMPLE, "like": "s4"})
    assert not refused.exception and "no store" in words(refused)


def test_the_sliders_write_into_the_address(place):
    page = opened("pages/storage/page.py", **QUERY)
    readers, ahead = page.select_slider
    assert (readers.value, ahead.value) == (32, 2)
    readers.set_value(64).run()
    assert page.query_params["readers"] == "64" and "Nobody waits" in words(page)


@pytest.mark.parametrize(
    "more",
    [
        {
            "step_s": "1.88",
            "batch": "256",
            "sample_bytes": "1MB",
            "hosts": "16",
            "readers": "4",
            "prefetch": "1",
            "latency_s": "0.2",
            "latency_p99_s": "1",
            "stream_bytes_per_s": "5e7",
            "store_bytes_per_s": "1e9",
            "store_requests_per_s": "3000",
        },
        {
            "step_s": "3.02",
            "batch": "256",
            "sample_bytes": "100kB",
            "hosts": "1",
            "readers": "1",
            "prefetch": "1",
            "latency_s": "0.05",
            "latency_p99_s": "1",
            "store_bytes_per_s": "1e9",
            "store_requests_per_s": "3000",
            "decode_s": "0.01",
        },
    ],
)
def test_files_as_large_as_the_advice_are_enough(more):
    found = answered(**more)
    advice = re.search(r"files of ([\d.,]+) (\w+)", verdict(found))
    told = float(advice[1].replace(",", "")) * {"kB": 1e3, "MB": 1e6, "GB": 1e9}[advice[2]]
    assert told == pytest.approx(found.needed.file_bytes, rel=1e-9)
    assert answered(**more, file_bytes=f"{advice[1]}{advice[2]}").limit == "nothing"
