"""Facts that are said of a run: what may be, what they open, what is guessed, and what contradicts the files."""

import math
from dataclasses import replace

import pytest

from app.facts.contradictions import contradictions
from app.facts.evidence import Shown, shown
from app.facts.guesses import GUESSES, guesses
from app.facts.kinds import FACTS, read
from app.facts.opening import FIGURES, opens
from app.facts.told import declare, facts_told, lacks, missing
from app.questions.asking import ask
from app.questions.ledger import LEDGER
from app.questions.mfu import MFU
from app.summary import chips_text
from collectors.ingest import ingest
from errors import ChipledgerError, InputError, QuestionError
from runs.run import FactValue, Run
from runs.schema import SCHEMAS
from tests.app import made_runs

S = 1_000_000_000


def a_log(rate: float = 250.0, tokens: float | None = None, config: str = "", steps: int = 12) -> str:
    """A MaxText log: one step a second, `rate` TFLOP/s a device, `tokens` a second where it prints them."""
    said = f", Tokens/s/device: {tokens:.3f}" if tokens else ""
    lines = [
        f"completed step: {n}, seconds: 1.000, TFLOP/s/device: {rate:.3f}{said}, loss: 2.000\n" for n in range(steps)
    ]
    return config + "".join(lines)


def stored(place, text: str, tmp_path, name: str = "train") -> Run:
    file = tmp_path / f"{name}.log"
    file.write_text(text)
    return place.store.find(ingest([file], place.store, name=name).run_id)


def profiled(place, devices: int, hosts: int = 1, facts: dict | None = None) -> Run:
    """A run whose profile shows so many devices, alike on each host."""
    each = devices // hosts
    rows = [(f"host{h}", d) for h in range(hosts) for d in range(each)]
    ops = {
        "capture": [0] * devices,
        "host": [h for h, _ in rows],
        "device": [d for _, d in rows],
        "role": ["compute"] * devices,
        "op": ["a"] * devices,
    }
    steps = {"step": [0, 1], "start_ns": [0, S], "dur_ns": [S, S]}
    return made_runs.write(place.store, "profiled", {"ops": ops, "steps": steps}, facts or {})


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("chip", "v5p", "TPU v5p"),
        ("chip", "NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("chips", "256", 256),
        ("chips", 256.0, 256),
        ("model", "Llama-2-7B", "llama2-7b"),
        ("seq", 4096, 4096),
        ("precision", "bfloat16", "bf16"),
        ("topology", "4X4x8", "4x4x8"),
        ("parallelism", "data=4, tensor=8", {"data": 4, "tensor": 8}),
        ("parallelism", {"fsdp": 16}, {"fsdp": 16}),
        ("usd_per_chip_hour", "4.2", 4.2),
        ("chip", "", None),
        ("chips", None, None),
    ],
)
def test_what_is_given_is_kept_by_its_usual_name(name, given, kept):
    assert read({name: given}, {}) == {name: kept}


NO_NUMBERS = [
    "nan",
    "inf",
    "-inf",
    "0",
    "-4",
    "",
    " ",
    "x",
    "1e999",
    "9" * 10_000,
    True,
    [4],
    {"a": 1},
    math.nan,
    math.inf,
]


@pytest.mark.parametrize("fact", [f for f in FACTS if f.unit and f.unit != "USD"], ids=lambda f: f.name)
@pytest.mark.parametrize("given", NO_NUMBERS, ids=lambda g: str(g)[:12])
def test_what_is_no_number_of_things_is_refused_in_one_sentence(fact, given):
    if given == "":
        assert read({fact.name: ""}, {}) == {fact.name: None}
        return
    with pytest.raises(ChipledgerError) as refused:
        read({fact.name: given}, {})
    text = str(refused.value)
    assert "expected" in text and len(text) < 400 and "\n" not in text


@pytest.mark.parametrize("fact", FACTS, ids=lambda f: f.name)
@pytest.mark.parametrize("given", ["v" * 10_000, "v5\x1bp", "\u202ev5p", "a\nb", "\x00", "<b>", [], 1 << 200])
def test_hostile_values_are_refused_in_one_sentence(fact, given):
    with pytest.raises(ChipledgerError) as refused:
        read({fact.name: given}, {})
    assert len(str(refused.value)) < 500 and str(refused.value).isprintable()


def test_a_name_that_is_none_is_told_with_the_nearest():
    with pytest.raises(InputError, match="Did you mean 'chips'"):
        read({"chipss": 4}, {})
    with pytest.raises(InputError, match="Did you mean 'seq'"):
        read({"sequence_length": 4}, {})
    with pytest.raises(InputError, match="no fact"):
        read({"x" * 10_000: 4}, {})
    with pytest.raises(QuestionError, match=r"Did you mean TPU v5p.*peak_flops_per_s"):
        read({"chip": "v5pp"}, {})
    with pytest.raises(QuestionError, match="does not say which chip"):
        read({"chip": "v5"}, {})


def test_a_chip_of_ones_own_is_kept_where_its_peak_is_said():
    given = {"chip": "our own npu", "peak_flops_per_s": "3e14"}
    assert read(given, {}) == {"chip": "our own npu", "peak_flops_per_s": 3e14}
    assert read({"chip": "our own npu"}, {"peak_flops_per_s": 3e14}) == {"chip": "our own npu"}
    with pytest.raises(QuestionError):
        read({"chip": "our own npu"}, {})


def test_of_several_facts_all_are_kept_or_none(place, tmp_path):
    run = stored(place, a_log(), tmp_path)
    with pytest.raises(ChipledgerError):
        declare(run, {"chip": "v5p", "chips": "none"}, "ann", place)
    assert place.store.find(run.run_id).manifest.facts == run.written.facts
    assert place.registry.declarations(run.run_id) == []


def test_a_log_alone_tells_its_mfu_once_its_chip_is_said(place, tmp_path):
    run = stored(place, a_log(250.0), tmp_path)
    assert ask(MFU, run, {}, place.registry).mfu is None
    lacking = {m.fact.name: m for m in missing(run, place)}
    assert lacking["chip"].opens[:1] == ("MFU",) and "useful maths" in lacking["chip"].opens
    best = lacking["chip"].guesses[0]
    assert best.value == "TPU v5p" and not best.certain and "54 % of its peak" in best.reason
    assert "TPU v5e" not in [g.value for g in lacking["chip"].guesses], "its peak is 197 TFLOP/s"
    run = declare(run, {"chip": best.value}, "ann", place)
    assert ask(MFU, run, {}, place.registry).mfu == pytest.approx(250 / 459)
    assert "chip" not in {m.fact.name for m in missing(run, place)}
    (known,) = [k for k in facts_told(run, place).known if k.name == "chip"]
    assert known.said is not None and known.said.who == "ann" and known.source.startswith("said by ann")


@pytest.mark.parametrize("text", [a_log(), a_log(tokens=5400.0, config="Config param model_name: llama2-7b\n")])
def test_what_is_said_to_open_opens(place, tmp_path, text):
    run = stored(place, text, tmp_path)
    lacking = {f.name: f for f in FACTS if lacks(run, f.name, place)}
    found = opens(run, list(lacking.values()), place)
    assert found
    figures = {f.name: f for f in FIGURES}
    from app.questions import question

    def told(run, name):
        try:
            return figures[name].tells(ask(question(figures[name].question), run, {}, place.registry))
        except QuestionError:
            return False

    def tried(name):
        return next((g.value for g in guesses(run, name)), lacking[name].tried)

    for name, opened in found.items():
        for figure in (f for f in opened if f in figures):
            assert not told(run, figure)
            needed = [n for n, o in found.items() if figure in o and n != "peak_flops_per_s"] or [name]
            said = declare(run, {n: tried(n) for n in needed}, "", place)
            assert told(said, figure), (name, figure)
            declare(run, dict.fromkeys(needed), "", place)


def test_a_log_that_counts_its_devices_and_tokens_lets_the_rest_be_reckoned(place, tmp_path):
    config = (
        "Config param per_device_batch_size: 4.0\nConfig param hardware: tpu\nNum_devices: 256, foo\n"
        "number parameters: 6.738 billion\n"
    )
    run = stored(place, a_log(250.0, tokens=16_384.0, config=config), tmp_path)
    run = declare(run, {"chip": "v5p"}, "", place)
    first = {name: guesses(run, name)[0] for name in ("chips", "model", "seq", "global_batch", "usd_per_chip_hour")}
    assert (first["chips"].value, first["chips"].certain) == (256, True)
    assert first["model"].value == "llama2-7b" and "6.74 billion" in first["model"].reason
    assert (first["seq"].value, first["seq"].certain) == (4096, True)
    assert (first["global_batch"].value, first["global_batch"].certain) == (1024, True)
    assert not first["usd_per_chip_hour"].certain and "nobody verified" in first["usd_per_chip_hour"].reason
    assert run.manifest.fact("chips") is None, "a guess is never taken without being asked"


@pytest.mark.parametrize(
    ("name", "chip", "chips"),
    [("llama-v5p-256-b", "TPU v5p", 128), ("job on h100 nodes", "H100 SXM", None), ("run v4", None, None)],
)
def test_names_are_read_for_chips_and_slices(place, tmp_path, name, chip, chips):
    run = stored(place, a_log().replace("TFLOP/s/device: 250.000, ", ""), tmp_path, name)
    assert [g.value for g in guesses(run, "chip")][:1] == ([chip] if chip else [])
    assert [g.value for g in guesses(run, "chips")][:1] == ([chips] if chips else [])


def test_chips_of_the_machine_are_offered_and_not_taken(place):
    """A machine has those of other jobs too, as W&B and tpu-info see it."""
    run = made_runs.write(
        place.store, "shared", {"steps": {"step": [0], "start_ns": [0], "dur_ns": [S]}}, {"chips_of_host": 8}
    )
    (guess,) = guesses(run, "chips")
    assert guess.value == 8 and not guess.certain and "other jobs'" in guess.reason


def test_every_guess_may_be_said_and_has_a_reason(place, tmp_path):
    run = stored(place, a_log(250.0, 5_400.0, "Config param model_name: llama2-7b\n"), tmp_path, "x-v5p-256")
    for name in GUESSES:
        for guess in guesses(run, name):
            assert read({name: guess.value}, {})[name] == guess.value and guess.reason.isprintable()


def test_a_run_never_holds_fewer_chips_than_its_profiles_show(place):
    run = declare(profiled(place, 8), {"chips": 4}, "ann", place)
    assert run.manifest.fact("chips") == 8 and chips_text(run) == "8 chips"
    assert [c.sentence for c in contradictions(run, place.registry)] == [
        "You said 4 chips; the profiles show 8. Told by 8."
    ]
    run = declare(run, {"chip": "TPU v3"}, "ann", place)  # two devices to a chip
    assert run.manifest.fact("chips") == 4 and contradictions(run, place.registry) == ()
    assert {r.run_id: r.manifest.fact("chips") for r in place.store.runs()} == {run.run_id: 4}
    run = declare(run, {"chips": ""}, "ann", place)
    assert run.manifest.fact("chips") == 4, "as the profile shows, by the chip that was said"


def test_more_chips_than_the_files_show_are_told_with_both_numbers(place):
    run = declare(profiled(place, 32, hosts=8, facts={"chips": 32}), {"chips": 64}, "", place)
    assert run.manifest.fact("chips") == 64
    (found,) = contradictions(run, place.registry)
    assert found.sentence == "You said 64 chips; the files show 32 (8 hosts of 4). Told by 64."
    assert facts_told(run, place).to_dict()["contradictions"] == [found.to_dict()]


def test_another_chip_model_or_length_than_the_files_say_is_told(place, tmp_path):
    config = "Config param model_name: llama2-7b\nConfig param max_target_length: 2048\n"
    run = stored(place, a_log(250.0, 5_400.0, config), tmp_path)
    assert contradictions(run, place.registry) == ()
    run = declare(run, {"model": "llama3.1-405b", "seq": 4096, "chip": "v5e"}, "", place)
    told = {c.fact: c.sentence for c in reversed(contradictions(run, place.registry))}
    assert set(told) == {"model", "seq", "chip"}
    assert "llama3.1-405b" in told["model"] and "llama2-7b" in told["model"]
    assert told["seq"].startswith("You said 4,096 tokens") and "2,048" in told["seq"]
    assert "197 TFLOP/s at most" in told["chip"] and "250 TFLOP/s" in told["chip"]
    sentences = " ".join(c.sentence for c in contradictions(run, place.registry))
    assert "GFLOPs a token" in sentences
    made = declare(profiled(place, 4, facts={"chip": "TPU v5p", "chips": 4}), {"chip": "v5e"}, "", place)
    assert [c.fact for c in contradictions(made, place.registry)] == ["chip"]
    same = declare(made, {"chip": "TPU v5"}, "", place)
    assert contradictions(same, place.registry) == (), "another name of the same chip"


def test_two_who_say_at_once_are_both_in_the_history_and_the_last_holds(place, tmp_path):
    run = stored(place, a_log(), tmp_path)
    declare(run, {"chips": 4}, "ann", place)
    later = declare(run, {"chips": 8, "usd_per_chip_hour": 2}, "bo", place)
    assert later.manifest.fact("chips") == 8 and place.registry.extras(run.run_id).usd_per_chip_hour == 2
    declare(run, {"chips": "", "usd_per_chip_hour": ""}, "", place)
    said = [(d.key, d.value, d.who) for d in place.registry.declarations(run.run_id)]
    assert said == [
        ("usd_per_chip_hour", None, ""),
        ("chips", None, ""),
        ("usd_per_chip_hour", 2.0, "bo"),
        ("chips", 8, "bo"),
        ("chips", 4, "ann"),
    ]
    assert place.store.find(run.run_id).manifest.facts == run.written.facts
    assert place.registry.extras(run.run_id).usd_per_chip_hour is None


def test_chip_time_of_a_number_of_chips_that_nobody_knows_is_not_measured(place, tmp_path):
    run = stored(place, a_log(), tmp_path)
    before = ask(LEDGER, run, {}, place.registry)
    assert not before.ledger.chips_known
    assert all(a.basis != "measured" for _, a in before.ledger.account.walk())
    assert "12.0 s of each chip" in LEDGER.verdict(before)
    after = ask(LEDGER, declare(run, {"chips": 4, "chip": "v5p"}, "", place), {}, place.registry)
    assert after.ledger.chips_known and after.ledger.chip_seconds == pytest.approx(4 * before.ledger.chip_seconds)
    assert "chip-seconds" in LEDGER.verdict(after) and "of each chip" not in LEDGER.verdict(after)


@pytest.mark.parametrize("who", ["x" * 101, "a\x1bb", "\u202eann"])
def test_who_says_it_is_one_plain_line(place, tmp_path, who):
    run = stored(place, a_log(), tmp_path)
    with pytest.raises(InputError, match="no name"):
        declare(run, {"chips": 4}, who, place)
    assert place.registry.declarations(run.run_id) == []


@pytest.mark.parametrize("devices", [1, 3, 8])
def test_the_number_of_chips_is_the_larger_of_what_is_said_and_what_profiles_show(place, devices):
    run = profiled(place, devices)
    for said in (1, 2, 4, 8, 9):
        for chip, per_chip in (("TPU v5p", 1), ("TPU v3", 2)):
            told = declare(run, {"chips": said, "chip": chip}, "", place)
            seen = math.ceil(devices / per_chip)
            assert told.manifest.fact("chips") == max(said, seen)
            wrong = [c.sentence for c in contradictions(told, place.registry)]
            assert any("profiles show" in w for w in wrong) == (said < seen)


def test_a_profile_of_one_host_contradicts_no_number_of_chips_above_it(place):
    seen = FactValue(4, "derived", "4 devices in the profiles")
    for hosts, devices in ((1, 4), (2, 8)):
        ops = {
            "capture": [0] * devices,
            "host": [f"h{n // 4}" for n in range(devices)],
            "device": [n % 4 for n in range(devices)],
            "role": ["compute"] * devices,
            "op": ["a"] * devices,
        }
        with place.store.writer() as writer:
            writer.rows("ops", SCHEMAS["ops"].batch(ops))
            facts = {"chips": replace(seen, value=devices, source=f"{devices} devices in the profiles")}
            run = writer.commit(run_id=str(hosts) * 64, name="of one host", kind="training", facts=facts, sources=[])
        told = contradictions(declare(run, {"chips": 64}, "ann", place), place.registry)
        assert bool(told) == (hosts > 1)  # of several hosts it shows how many there are


def test_a_chip_is_guessed_by_the_peak_of_the_format_that_ran(place, tmp_path):
    run = declare(stored(place, a_log(rate=600), tmp_path), {"precision": "fp8"}, "ann", place)
    told = {g.value: g.reason for g in guesses(run, "chip")}
    assert "26 %" in told["TPU 7x"].replace("\u202f", " ")  # of its FP8 peak: it would be 52 % of its BF16 peak
    assert "65 %" in told["TPU v6e"].replace("\u202f", " ")  # which has no FP8: as MFU is measured


@pytest.mark.parametrize("size", ["\ud800", "\x1b[31m4", "a\nb"])
def test_what_no_size_of_an_axis_is_stands_escaped_in_the_message(size):
    with pytest.raises(QuestionError) as told:
        read({"parallelism": {"a": size}}, {})
    assert str(told.value).isprintable() and str(told.value).encode()


def test_what_a_run_could_not_tell_while_it_lay_in_the_bin_is_told_once_it_is_back(place, tmp_path):
    run = stored(place, a_log(tokens=9_000.0), tmp_path)
    before = run.writing
    lacking = [f for f in FACTS if f.name in ("chip", "model")]
    assert place.store.bin.put(run.run_id)
    assert opens(run, lacking, place) == {} and guesses(run, "chip") == () and shown(run) == Shown()
    assert place.store.bin.restore(run.run_id)
    back = place.store.find(run.run_id)
    assert back.writing == before
    assert opens(back, lacking, place)["chip"] and guesses(back, "chip") and shown(back).tokens_per_s == 9_000.0
