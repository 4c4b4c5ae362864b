"""Memory of a run, of a compile and by formula, against arithmetic done here."""

import json

import pytest

from analyzers.device import memory
from catalog.models import model, parameters
from catalog.training_memory import Sharding, training_memory
from errors import QuestionError
from errors.options import parse_options
from runs.run import facts_of
from runs.tables import MemoryTables

GB = 10**9
SECOND = 10**9


def ask(tables=None, facts=None, **options):
    result = memory.analyze(MemoryTables(tables or {}), facts_of(facts or {}), parse_options(memory.OPTIONS, options))
    json.dumps(result.to_dict(), allow_nan=False)
    return result


def columns(rows, names):
    return {name: [row.get(name) for row in rows] for name in names}


def buffers(*more, program=1, capture=0):
    """Two inputs, one of them the same on 4 devices, and what a training step keeps."""
    return [
        {
            "name": "params['w']",
            "category": "argument",
            "bytes": 4 * GB,
            "padded_bytes": 5 * GB,
            "copies": 4,
            "shape": "bf16[10,100]{1,0:T(8,128)}",
            "op": "param.1",
            "source": None,
        },
        {"name": "batch", "category": "argument", "bytes": GB, "padded_bytes": GB, "copies": 1},
        {
            "name": "jit(step)/jvp(layer)/tanh",
            "category": "temporary",
            "bytes": 3 * GB,
            "padded_bytes": 3 * GB,
            "source": "model.py:3",
        },
        {"name": "jit(step)/transpose(jvp(layer))/dot", "category": "temporary", "bytes": GB, "padded_bytes": GB},
        {"name": "room between buffers", "category": "fragmentation", "bytes": 0, "padded_bytes": GB},
        *more,
    ]


def tables(parts=None, program=1, capture=0):
    parts = buffers() if parts is None else parts
    rows = [{"kind": "peak_buffer", "capture": capture, "program": program, **b} for b in parts]
    whole = sum(b["padded_bytes"] for b in parts)
    rows += [
        {
            "kind": "peak",
            "capture": capture,
            "program": program,
            "bytes": sum(b["bytes"] for b in parts),
            "padded_bytes": whole,
        }
    ]
    names = (
        "kind",
        "capture",
        "program",
        "name",
        "category",
        "bytes",
        "padded_bytes",
        "copies",
        "reused",
        "awaits_backward",
        "shape",
        "op",
        "source",
    )
    return {
        "memory": columns(rows, names),
        "modules": {"capture": [capture], "program": [program], "name": ["jit_step"]},
    }


def test_the_peak_of_a_program():
    result = ask(tables(), {"chip": "v5p"})
    assert (result.subject, result.peak_basis, result.program) == ("profile", "modelled", "jit_step")
    assert result.peak_bytes == result.parts_bytes == 11 * GB and result.padding_bytes == GB
    assert result.limit_source == "the usable memory of TPU v5p in the catalogue" and result.fits is None
    assert result.free_bytes == result.limit_bytes - 11 * GB
    by = {c["category"]: (c["parts"], c["bytes"], c["padded_bytes"]) for c in result.to_dict()["categories"]}
    assert by == {
        "argument": (2, 5 * GB, 6 * GB),
        "saved": (1, 3 * GB, 3 * GB),
        "temporary": (1, GB, GB),
        "fragmentation": (1, 0, GB),
    }
    assert result.to_dict()["buffers"][0]["name"] == "params['w']"


def test_advice_says_what_each_gives_back():
    advice = {a.what: a for a in ask(tables()).advice}
    assert {k: a.bytes for k, a in advice.items()} == {
        "shard": 5 * GB * 3 // 4,
        "remat": 3 * GB,
        "padding": GB,
        "fragmentation": GB,
    }
    assert "params['w']" in advice["shard"].text and "1 input," in advice["shard"].text
    assert advice["remat"].at_most and not advice["shard"].at_most
    assert [a.bytes for a in ask(tables()).advice] == sorted((a.bytes for a in advice.values()), reverse=True)


def test_what_is_gone_before_the_backward_pass_is_no_saved_activation():
    part = {"name": "jit(step)/jvp()/dot", "category": "temporary"}
    sizes = {True: GB, None: 2 * GB, False: 4 * GB}  # of what no trace tells, the name alone does
    parts = [{**part, "bytes": size, "padded_bytes": size, "awaits_backward": waits} for waits, size in sizes.items()]
    result = ask(tables(parts))
    held = {c["category"]: c["bytes"] for c in result.to_dict()["categories"]}
    assert held == {"saved": 3 * GB, "temporary": 4 * GB}
    (advice,) = result.advice
    assert (advice.what, advice.bytes) == ("remat", 3 * GB) and "2 values" in advice.text
    assert result.to_dict()["buffers"][0]["awaits_backward"] is False


def test_results_that_could_take_the_place_of_inputs():
    shape = {"shape": "f32[8]{0}", "bytes": GB, "padded_bytes": GB}
    parts = [{"name": f"in{i}", "category": "argument", **shape} for i in range(3)]
    parts += [{"name": f"out{i}", "category": "output", **shape} for i in range(2)]
    parts += [{"name": "other", "category": "output", "shape": "f32[9]{0}", "bytes": GB, "padded_bytes": GB}]
    (advice,) = ask(tables(parts)).advice
    assert (advice.what, advice.bytes, advice.at_most) == ("donate", 2 * GB, True)


def test_an_input_that_is_donated_gives_its_place_once():
    shape = {"shape": "f32[8]{0}", "bytes": GB, "padded_bytes": GB}
    used, free = ({"name": f"in {r}", "category": "argument", "reused": r, **shape} for r in (True, False))
    out = {"name": "out", "category": "output", **shape}
    assert ask(tables([used, out])).advice == ()
    (advice,) = ask(tables([used, free, out, out])).advice
    assert (advice.what, advice.bytes) == ("donate", GB) and "already" not in advice.text
    (unsure,) = ask(tables([{**used, "reused": None}, out])).advice
    assert unsure.bytes == GB and "which inputs are donated already, this run does not tell" in unsure.text
    assert [b["reused"] for b in ask(tables([used, free, out])).to_dict()["buffers"]] == [True, False, None]


def test_little_is_no_advice():
    parts = [{"name": "x", "category": "argument", "bytes": GB - 1000, "padded_bytes": GB, "copies": 1}]
    assert ask(tables(parts)).advice == ()


def test_a_program_counts_once_however_many_captures_saw_it():
    small = [{"name": "x", "category": "argument", "bytes": 5, "padded_bytes": 5}]
    one, two = tables(), tables(small, program=1, capture=1)
    both = {name: {c: one[name][c] + two[name][c] for c in one[name]} for name in one}
    result = ask(both)
    assert list(result.programs["name"]) == ["jit_step"] and result.peak_bytes == 11 * GB
    two["modules"]["name"] = ["jit_eval"]
    both = {name: {c: one[name][c] + two[name][c] for c in one[name]} for name in one}
    assert list(ask(both).programs["name"]) == ["jit_step", "jit_eval"]
    other = ask(both, program="jit_eval")
    assert other.program == "jit_eval" and other.parts_bytes == 5 and other.peak_bytes == 11 * GB
    with pytest.raises(QuestionError, match="'jit_train'.*one of jit_step, jit_eval"):
        ask(both, program="jit_train")


def sampled(rows):
    """Samples of (device, second, in use, reserved, available)."""
    made = []
    for device, second, used, reserved, free in rows:
        for kind, value in (
            ("bytes_in_use", used),
            ("bytes_reserved", reserved),
            ("bytes_available", free),
            ("peak_bytes_in_use", used + 1),
        ):
            if value is not None:
                made.append(
                    {
                        "kind": kind,
                        "host": "a",
                        "device": device,
                        "ts_ns": second * SECOND,
                        "bytes": value,
                        "name": "bfc",
                    }
                )
    return {"memory": columns(made, ("kind", "host", "device", "ts_ns", "bytes", "name"))}


def test_samples_over_time():
    result = ask(sampled([(0, 1, 4, 1, 95), (0, 2, 9, 21, 70), (0, 3, 30, 0, 70), (1, 2, 7, None, 93)]))
    assert (result.peak_bytes, result.peak_basis, result.limit_bytes) == (30, "measured", 100)
    assert result.limit_source == "the device's own allocator" and result.free_bytes == 70
    first, second = result.devices.to_dict("records")
    assert (first["device"], first["samples"], first["peak_bytes"], first["peak_ns"]) == (0, 3, 30, 2 * SECOND)
    assert (second["device"], second["peak_bytes"], second["lifetime_peak_bytes"]) == (1, 7, 8)
    assert list(result.samples["used_bytes"]) == [5, 30, 7, 30]


def test_of_several_samples_of_one_instant_none_is_lost():
    result = ask(sampled([(0, 1, 10, 1, 89), (0, 1, 90, 2, 8), (0, 1, 20, 3, 77), (1, 1, 30, 0, 10), (0, 2, 5, 0, 95)]))
    assert (result.peak_bytes, result.limit_bytes, result.free_bytes) == (92, 100, 8)
    assert [(d["device"], d["samples"], d["peak_bytes"]) for d in result.devices.to_dict("records")] == [
        (0, 4, 92),
        (1, 1, 30),
    ]
    assert list(result.samples["used_bytes"]) == [11, 92, 23, 30, 5]
    assert any("the most of 5 samples of bytes in use, taken beside any profile" in note for note in result.notes)


def test_samples_of_a_profile_and_of_a_monitor_beside_it_are_told_apart():
    """As where a profile of PyTorch lies beside scrapes of all GPUs of a machine."""
    told = [(0, 1, 4_000), (0, 2, 5_000), (None, 1, 7_000), (None, 6, 7_500)]
    kind = {"capture": [c for c, *_ in told], "ts_ns": [at * SECOND for _, at, _ in told], "device": [0] * 4}
    rows = kind | {"kind": ["bytes_in_use"] * 4, "bytes": [held for *_, held in told]}
    [said, *_] = ask({"memory": rows}).notes
    assert said.startswith(
        "The peak is the most of 2 samples that allocators wrote into the profile (at most 5.00 kB) "
    )
    assert "and of 2 taken beside it, 5.00 s apart (at most 7.50 kB), of what was in use on a device" in said
    rows |= {"capture": [0] * 4}
    assert (
        "the most of 4 samples that allocators wrote into the profile: bytes in use" in ask({"memory": rows}).notes[0]
    )


def test_samples_of_which_some_do_not_tell_what_is_left():
    told = ask(sampled([(0, 1, 40, 0, None), (0, 1, 90, None, None), (0, 1, 20, 3, 77)]))
    assert list(told.samples["used_bytes"])[2] == 23 and told.limit_bytes == 100 and told.peak_bytes == 90


def test_samples_without_a_time_count_and_are_not_drawn_over_it():
    rows = sampled([(0, 1, 40, 0, 60), (1, 2, 90, 0, 10)])
    rows["memory"]["ts_ns"] = [
        None if d == 1 else t for d, t in zip(rows["memory"]["device"], rows["memory"]["ts_ns"], strict=True)
    ]
    result = ask(rows)
    assert (result.peak_bytes, result.limit_bytes) == (90, 100)
    assert [(d["device"], d["peak_bytes"], d["peak_ns"]) for d in result.to_dict()["devices"]] == [
        (1, 90, None),
        (0, 40, SECOND),
    ]
    assert list(result.samples["used_bytes"]) == [40]
    assert any(note.startswith("Of 1 sample no time is told") for note in result.notes)
    rows["memory"]["ts_ns"] = [None] * len(rows["memory"]["ts_ns"])
    assert ask(rows).peak_bytes == 90 and not len(ask(rows).samples)


def test_the_limit_that_an_allocator_says_is_its_own_and_of_the_fullest_device():
    rows = [
        {"device": device, "kind": kind, "bytes": value}
        for device, used, limit in ((0, 40, 200), (1, 90, 100))
        for kind, value in (("bytes_in_use", used), ("bytes_limit", limit))
    ]
    result = ask({"memory": columns(rows, ("device", "kind", "bytes"))})
    assert (result.limit_bytes, result.limit_source) == (100, "the device's own allocator")
    assert (result.peak_bytes, result.free_bytes) == (90, 10)


def test_what_an_allocator_counted_beside_its_samples():
    rows = sampled([(0, 1, 20, 0, 80), (1, 1, 30, 0, 70)])
    rows["memory"]["bytes"] = [{21: 88}.get(value, value) for value in rows["memory"]["bytes"]]
    assert (ask(rows).peak_bytes, ask(rows).counted_bytes) == (30, 88)
    shown = sampled([(0, 1, 1_000, 0, 80), (1, 1, 30, 0, 70)])
    assert ask(shown).counted_bytes is None and ask(tables()).counted_bytes is None


def test_a_compile_that_fits_and_one_that_does_not():
    rows = [
        {"kind": "argument", "capture": 0, "program": 0, "name": "w", "bytes": 900, "padded_bytes": 1000, "copies": 2},
        {"kind": "arguments", "capture": 0, "program": 0, "padded_bytes": 1200},
        {"kind": "outputs", "capture": 0, "program": 0, "padded_bytes": 100},
        {"kind": "temporaries", "capture": 0, "program": 0, "padded_bytes": 5000},
        {"kind": "peak", "capture": 0, "program": 0, "padded_bytes": 4300},
        {"kind": "bytes_limit", "capture": 0, "bytes": 5000},
    ]
    given = {
        "memory": columns(rows, ("kind", "capture", "program", "name", "bytes", "padded_bytes", "copies")),
        "modules": {"capture": [0], "program": [0], "name": ["step"]},
    }
    facts = {"outcome": "compiled", "fits": True, "chip": "v6e"}
    result = ask(given, facts)
    assert (result.subject, result.fits, result.peak_bytes, result.free_bytes) == ("compiled", True, 4300, 700)
    parts = dict(zip(result.parts["name"], result.parts["padded_bytes"], strict=True))
    assert parts == {"temporaries": 3000, "w": 1000, "other arguments": 200, "outputs": 100}
    assert result.padding_bytes == 100 and result.limit_source == "the compiler"
    assert any("besides it tells the sum only" in n for n in result.notes)
    refused = ask(
        {},
        {
            "outcome": "out_of_memory",
            "fits": False,
            "message": "exceeds",
            "needed_bytes": 7000,
            "limit_bytes": 5000,
            "model": "llama3.1-8b",
        },
    )
    assert (refused.subject, refused.fits, refused.peak_bytes, refused.free_bytes) == ("compiled", False, 7000, -2000)
    assert refused.message == "exceeds" and not len(refused.parts) and not refused.advice


def test_a_compile_whose_buffers_are_listed_tells_more_than_a_sum():
    result = ask(tables(), {"outcome": "compiled"})
    assert result.subject == "compiled" and "temporary" in set(result.parts["category"])
    assert any("buffer by buffer at the fullest moment" in n for n in result.notes)
    assert not any("the sum only" in n for n in result.notes)


def test_a_dump_tells_its_inputs():
    rows = [{"kind": "argument", "capture": 0, "program": 0, "name": "w", "bytes": 900, "padded_bytes": 1000}]
    given = {"memory": columns(rows, ("kind", "capture", "program", "name", "bytes", "padded_bytes"))}
    result = ask(given, {"outcome": "compiled"})
    assert result.peak_bytes is None and result.fits is None and result.parts_bytes == 1000


def test_by_formula():
    result = ask(facts={"model": "llama3.1-8b"}, chip="v5p", seq=4096, batch=2, fsdp=8, remat="full")
    expected = training_memory(model("llama3.1-8b"), Sharding(fsdp=8), seq=4096, batch=2, remat="full")
    assert result.subject == "formula" and result.peak_bytes == pytest.approx(sum(expected.values()), abs=6)
    got = dict(zip(result.parts["category"], result.parts["padded_bytes"], strict=True))
    assert got == {k: round(v) for k, v in expected.items()}
    assert got["weights"] == round(parameters(model("llama3.1-8b")).total * 2 / 8)
    assert result.fits and result.setting["chips"] == 8
    fitting = result.largest_batch
    for batch, fits in ((fitting, True), (fitting + 1, False)):
        again = ask(facts={"model": "llama3.1-8b"}, chip="v5p", seq=4096, batch=batch, fsdp=8, remat="full")
        assert again.fits is fits


def test_a_formula_takes_what_the_run_says_and_names_what_it_assumes():
    facts = {"model": "llama3.1-8b", "parallelism": {"data": 4, "fsdp": 2, "model": 8}, "seq": 2048, "global_batch": 64}
    setting = ask(facts=facts).setting
    assert (setting["dp"], setting["fsdp"], setting["tp"], setting["batch"], setting["seq"]) == (4, 2, 8, 8, 2048)
    bare = ask(facts={"model": "llama3.1-8b"})
    assert bare.fits is None and bare.limit_bytes is None
    assert any("8,192 tokens and one sequence" in n for n in bare.notes) and any("No chip" in n for n in bare.notes)


def test_advice_by_formula_is_the_difference():
    given = {"seq": 8192, "tp": 8, "dp": 4}
    before = ask(facts={"model": "llama3.1-70b"}, **given)
    after = {
        "selective": {"remat": "selective"},
        "remat": {"remat": "full"},
        "sequence_parallel": {"sequence_parallel": "yes"},
        "fsdp": {"dp": 1, "fsdp": 4},
    }
    assert {a.what for a in before.advice} == set(after)
    for advice in before.advice:
        changed = ask(facts={"model": "llama3.1-70b"}, **{**given, **after[advice.what]})
        assert advice.bytes == pytest.approx(before.peak_bytes - changed.peak_bytes, abs=10)


def test_an_option_puts_a_model_in_the_place_of_the_profile():
    assert ask(tables(), {"chip": "v5p"}, model="llama3.1-8b").subject == "formula"


@pytest.mark.parametrize(
    ("facts", "options", "said"),
    [
        ({}, {}, "nothing in this run tells of memory"),
        ({"model": "llama3.1-8b"}, {"tp": 0}, "option tp=0"),
        ({"model": "llama3.1-8b"}, {"batch": 0}, "option batch=0"),
        ({"model": "llama3.1-8b"}, {"batch": 1 << 40}, "option batch=1099511627776"),
        ({"model": "llama3.1-8b"}, {"seq": -3}, "option seq=-3"),
        ({"model": "no-such-model"}, {}, "no-such-model"),
    ],
)
def test_what_has_no_answer(facts, options, said):
    with pytest.raises(QuestionError, match=said):
        ask(facts=facts, **options)
