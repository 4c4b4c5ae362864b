"""What chips drew, what a step and a token took of it, and what held clocks down; every sample was made here."""

import json
import math

import pytest

from analyzers.device.power import analyze
from app.questions.power import words
from errors import QuestionError
from runs.run import FactValue
from runs.tables import MemoryTables

S = 1_000_000_000
T0 = 1_700_000_000 * S
NO_PRICE = {"usd_per_kwh": None}
HEAT, LIMIT = "heat (hardware)", "the power limit"


def gpu(device, what, series, host="n1", unit="W", source="a.prom"):
    """Samples of a chip as DCGM's exporter tells them: (second, value)."""
    name = f'GPU {device} {what}{{host="{host}"}}' if host else f"GPU {device} {what}"
    return [(T0 + round(at * S), name, float(value), unit, source) for at, value in series]


def scalars(*rows):
    ts, name, value, unit, source = zip(*rows, strict=True)
    return {"ts_ns": ts, "name": name, "value": value, "unit": unit, "source": source}


def every(seconds, value, end=600):
    return [(at, value) for at in range(0, end + 1, seconds)]


def steps(count=600, seconds=1.0, tokens=1000.0, begin=0.0):
    at = [begin + n * seconds for n in range(count)]
    return {
        "attempt": [0] * count,
        "step": list(range(count)),
        "start_ns": [T0 + round(a * S) for a in at],
        "dur_ns": [round(seconds * S)] * count,
        "tokens_per_s_per_chip": [tokens] * count,
        "order": list(range(count)),
        "source": ["train.log"] * count,
    }


def asked(rows, facts=None, price=None, **tables):
    told = {name: FactValue(value, "declared", "test") for name, value in (facts or {}).items()}
    found = analyze(MemoryTables({"scalars": scalars(*rows), **tables}), told, {"usd_per_kwh": price})
    json.dumps(found.to_dict(), allow_nan=False)
    return found


def test_energy_of_a_step_and_of_a_token():
    rows = [
        r for d in range(8) for r in gpu(d, "power", every(10, 500 + 10 * d)) + gpu(d, "power limit", every(10, 700))
    ]
    found = asked(rows, {"chips": 8, "chip": "H100 SXM"}, price=0.1, steps=steps())
    assert found.window == "job" and found.window_s == 600 and found.known_share == pytest.approx(1)
    assert found.mean_watts == pytest.approx(535) and found.highest_watts == 570
    assert (found.limit_watts, found.limit_from, found.sheet_watts) == (700, "samples", 700)
    assert found.energy_j == pytest.approx(535 * 8 * 600)
    assert found.step_j == pytest.approx(535 * 8) and found.token_j == pytest.approx(0.535)
    assert found.tokens_of == "trained" and found.energy_usd == pytest.approx(535 * 8 * 600 / 3.6e6 * 0.1)
    assert found.slowed is None and found.idle_energy_share == 0 and not found.apart and not found.notes
    said = words.verdict(found).whole
    assert "535 W in the mean, 76 % of its limit of 700 W; 8 chips drew 0.713 kWh ($0.0713)" in said
    assert "A step took 4.28 kJ on 8 chips, 535 mJ a token." in said and "No sample tells whether clocks" in said
    assert len(words.table(found).rows) == 8


def test_of_some_chips_a_step_is_that_of_all_and_says_so():
    found = asked(gpu(0, "power", every(10, 500)), {"chips": 16, "chip": "H100 SXM"}, steps=steps())
    assert found.step_j == pytest.approx(8000) and found.energy_j == pytest.approx(300_000)
    assert found.limit_from == "catalogue" and found.limit_watts == 700
    assert any("16 chips, each of which is taken" in note for note in found.notes)


def test_a_counter_goes_before_watts_and_may_begin_anew():
    counter = [(t, 1e9 + 650 * t if t <= 300 else 650 * (t - 310)) for t in range(0, 601, 10)]
    rows = gpu(0, "power", every(10, 600)) + gpu(0, "energy since the driver was loaded", counter, unit="J")
    found = asked(rows)
    assert found.energy_j == pytest.approx(650 * 590 + 600 * 10)  # in which it began anew watts tell
    assert found.devices["energy_from"].tolist() == ["counter"] and found.window == "samples"
    alone = asked(gpu(0, "energy since the driver was loaded", counter, unit="J"))
    assert alone.energy_j == pytest.approx(650 * 590) and alone.highest_watts is None
    assert alone.mean_watts == pytest.approx(650) and alone.known_share == pytest.approx(590 / 600)


def test_a_counter_that_stands_is_none():
    rows = gpu(0, "power", every(10, 600)) + gpu(0, "energy since the driver was loaded", every(10, 5), unit="J")
    assert asked(rows).energy_j == pytest.approx(360_000)


def test_missing_samples_are_not_zero():
    series = [(t, 400) for t in range(0, 601, 10) if not 200 <= t <= 400]
    found = asked(gpu(0, "power", series), steps=steps())
    assert found.mean_watts == pytest.approx(400) and found.energy_j == pytest.approx(400 * 380)
    assert found.known_share == pytest.approx(380 / 600) and found.step_j == pytest.approx(400)


def test_a_chip_that_was_sampled_once_takes_no_answer_from_the_others():
    """A machine that was taken in as the job ended is one of them; as the first by name it ended the question in an
    error, and with it the findings."""
    late = [(t, 400) for t in range(150, 301, 10)]
    taken = steps(300) | {"dur_ns": [S // 2] * 150 + [S] * 150}
    found = asked(gpu(0, "power", [(290, 400)]) + gpu(1, "power", late) + gpu(2, "power", every(10, 400)), steps=taken)
    assert found.chips == 3 and found.devices["mean_watts"].isna().tolist() == [True, False, False]
    assert found.step_j == pytest.approx(3 * 400 * 0.75)  # of all steps, though of the second chip half are known


def test_energy_before_and_after_the_job_is_not_its():
    found = asked(gpu(0, "power", every(10, 400)), steps=steps(100, begin=200))
    assert found.energy_j == pytest.approx(40_000) and found.window_s == 100
    late = asked(gpu(0, "power", every(10, 400)), steps=steps(100, begin=5000))
    assert late.window == "samples" and late.step_j is None and "No sample of power lies while" in late.notes[0]


def test_idle_chips():
    rows = [r for d in range(4) for r in gpu(d, "power", every(10, 600 if d < 2 else 100))]
    found = asked(rows, {"chip": "H100 SXM"})
    assert found.idle_energy_share == pytest.approx(200 / 1400)
    assert "14 % of the energy was drawn by chips below a quarter" in words.verdict(found).whole


def hot(at):
    return 300 <= at < 600


def machine(chips=8, which=3):
    for d in range(chips):
        mine = d == which
        times = range(0, 601, 10)
        yield from gpu(d, "power", [(t, 450 if mine and hot(t) else 600) for t in times])
        yield from gpu(d, "SM clock", [(t, 1200 if mine and hot(t) else 1750 + d) for t in times], unit="MHz")
        yield from gpu(d, "temperature", [(t, 88 if mine else 60) for t in times], unit="°C")
        yield from gpu(d, f"slowed down by {HEAT}", [(t, 100.0 * (mine and hot(t))) for t in times], unit="%")
        yield from gpu(d, f"slowed down by {LIMIT}", every(10, 0.0), unit="%")


def test_a_chip_that_heat_holds_down():
    at = [*(float(n) for n in range(300)), *(300 + 1.5 * n for n in range(200))]
    taken = steps(500) | {
        "start_ns": [T0 + round(a * S) for a in at],
        "dur_ns": [S] * 300 + [S * 3 // 2] * 200,
    }
    found = asked([*machine()], steps=taken)
    assert found.slowed is not None
    [heat] = found.slowed
    assert heat.by == HEAT and heat.chips == 1 and heat.most_share == pytest.approx(0.5)
    assert heat.share == pytest.approx(0.5 / 8) and (heat.clock_mhz, heat.clock_else_mhz) == (1200, 1753)
    [one] = found.apart
    assert (one.host, one.device, one.slowed_by) == ("n1", 3, HEAT) and one.celsius == pytest.approx(88)
    assert one.below_share == pytest.approx(1 - (1200 + 1753) / 2 / 1753.5, abs=2e-3) and one.floor_share == 0.02
    [more] = found.longer
    assert (more.by, more.steps, more.other_steps) == (HEAT, 200, 300)
    assert more.more_s == pytest.approx(100) and more.step_s == 1.5
    said = words.verdict(found).whole
    assert "Chip 3 of n1 ran at" in said and "held down by heat (hardware)" in said
    assert "Steps meanwhile took 1.50 s (200 steps) against 1.00 s: 1 min 40 s more in all." in said


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({3: 1.0}, "held 1 of 8 chips down for 100 % of the time"),
        ({3: 1.0, 4: 0.25}, "held 2 of 8 chips down for up to 100 % of the time"),
        (dict.fromkeys(range(8), 0.5), "held 8 of 8 chips down for 50 % of the time"),
    ],
)
def test_how_long_chips_were_held_down_is_of_their_own_time(held, said):
    """Of one of eight that was held down throughout '1 of 8 chips down for 12 % of the time' was said."""
    rows = [r for d in range(8) for r in gpu(d, "power", every(10, 500))]
    for d in range(8):
        rows += gpu(d, f"slowed down by {HEAT}", [(t, 100.0 * (t < 600 * held.get(d, 0))) for t in range(0, 601, 10)])
    assert f"Heat (hardware) {said}" in words.verdict(asked(rows)).whole


def test_clocks_of_a_job_that_is_down_are_no_others():
    """Between two attempts chips stand at 345 MHz."""
    rows = gpu(0, "power", every(10, 500)) + gpu(
        0, f"slowed down by {HEAT}", [(t, 100.0 * hot(t)) for t, _ in every(10, 0)]
    )
    rows += gpu(0, "SM clock", [(t, 1200 if hot(t) else 345 if 100 <= t < 300 else 1750) for t, _ in every(10, 0)])
    taken = steps(400) | {"start_ns": [T0 + t * S for t in (*range(100), *range(300, 600))]}
    [heat] = asked(rows, steps=taken).slowed or ()
    assert (heat.clock_mhz, heat.clock_else_mhz) == (1200, 1750)


def test_chips_alike_are_not_told_apart_and_two_have_no_median():
    alike = [r for d in range(8) for r in gpu(d, "SM clock", every(10, 1700 + 5 * d), unit="MHz")]
    power = [r for d in range(8) for r in gpu(d, "power", every(10, 500))]
    assert not asked(power + alike).apart
    two = [r for d in range(2) for r in gpu(d, "SM clock", every(10, 1700 - 500 * d), unit="MHz")]
    assert not asked(power + two).apart


def beside_idle(busy=5, slow=None, watts=80, slowed=None):
    """A machine of eight chips of which the others do nothing."""
    for d in range(8):
        clock = 345 if d >= busy else 1500 if d == slow else 1750 + d
        yield from gpu(d, "power", every(10, watts if d >= busy else 600))
        yield from gpu(d, "SM clock", every(10, clock), unit="MHz")
        if slowed:
            yield from gpu(d, f"slowed down by {slowed}", every(10, 100.0 * (d >= busy)), unit="%")


SERVED = {"arrival_ns": [T0, T0], "last_token_ns": [T0 + 60 * S, T0 + 600 * S], "output_tokens": [1000, 5000]}


@pytest.mark.parametrize("tables", [{"steps": steps()}, {"requests": SERVED}, {}])
def test_chips_that_have_nothing_to_do_hold_nobody_up(tables):
    """Those of others, or of a replica without requests: it was said that all wait for them in a job."""
    held = {"chips": 5 if "steps" in tables else 8}
    assert not asked([*beside_idle()], held, **tables).apart
    assert not asked([*beside_idle(busy=3)], {"chips": 3} if "steps" in tables else held, **tables).apart
    [one] = asked([*beside_idle(slow=2)], held, **tables).apart
    assert one.device == 2 and one.reference_mhz == pytest.approx(1751)
    down = asked([*beside_idle(slowed=HEAT)], held, **tables)
    assert [one.device for one in down.apart] == [5, 6, 7]
    if tables:
        assert "wait for it" not in words.verdict(down).whole


def test_a_chip_of_the_job_that_draws_little_is_told_apart():
    found = asked([*beside_idle(busy=7)], {"chips": 8}, steps=steps())
    assert [one.device for one in found.apart] == [7] and "in a job all wait for it" in words.verdict(found).whole


def test_time_held_down_as_a_counter_has_it():
    series = [(t, 7.0 + 0.25 * t if t < 400 else 0.25 * (t - 400)) for t in range(0, 601, 10)]
    rows = gpu(0, "power", every(10, 500)) + gpu(0, f"time slowed down by {LIMIT}", series, unit="s")
    found = asked(rows)
    assert found.slowed is not None and found.slowed[0].share == pytest.approx(0.25)
    still = gpu(0, "power", every(10, 500)) + gpu(0, f"time slowed down by {LIMIT}", every(10, 3), unit="s")
    found = asked(still)
    assert found.slowed == () and "Nothing held clocks down." in words.verdict(found).whole


def test_several_hosts_and_two_monitors():
    mine = [r for h in ("n1", "n2") for d in range(2) for r in gpu(d, "power", every(10, 500), host=h)]
    other = [(T0 + t * S, "gpu.0.powerWatts", 480.0, "W", "run.wandb") for t in range(0, 601, 15)]
    found = asked(mine + other)
    assert found.chips == 4 and found.energy_j == pytest.approx(1_200_000)
    assert "samples and W&B tell of power: samples of 4 chips, which alone count." in found.notes[0]


def test_a_monitor_of_clocks_alone_takes_no_answer_from_one_of_power():
    """Clocks of more GPUs by DCGM's exporter, and no power: that samples of power name no time was said."""
    rows = [r for d in range(8) for r in gpu(d, "SM clock", every(10, 1700), unit="MHz")]
    rows += [(T0 + t * S, f"gpu.{d}.powerWatts", 480.0, "W", "run.wandb") for t in range(0, 601, 15) for d in range(2)]
    found = asked(rows)
    assert found.chips == 2 and found.mean_watts == pytest.approx(480) and not found.notes


def test_what_wandb_and_mlflow_sample():
    rows = [(T0 + t * S, f"gpu.{d}.powerWatts", 300.0, "W", "run.wandb") for t in range(0, 601, 15) for d in range(4)]
    rows += [(T0, "gpu.2.gpu", 5.0, "%", "run.wandb"), (T0, "gpu.3.memory", 5.0, "%", "run.wandb")]  # others' GPUs
    found = asked([*rows, (T0, "gpu.0.enforcedPowerLimitWatts", 400.0, "W", "run.wandb")])
    assert found.chips == 2 and found.energy_j == pytest.approx(360_000) and found.limit_watts == 400
    kept = [
        (T0 + t * S, f"system/node-{n}/gpu_0_power_usage_watts", 200.0, "W", "mlflow.db")
        for t in range(0, 601, 10)
        for n in range(2)
    ]
    found = asked(kept)
    assert found.devices["host"].tolist() == ["node-0", "node-1"] and found.energy_j == pytest.approx(240_000)


def test_a_server():
    answered = {"arrival_ns": [T0, T0], "last_token_ns": [T0 + 60 * S, T0 + 600 * S], "output_tokens": [1000, 5000]}
    found = asked(gpu(0, "power", every(10, 300)), requests=answered)
    assert found.token_j == pytest.approx(30) and found.tokens_of == "generated" and found.step_j is None
    assert "A token generated took 30.0 J on 1 chip." in words.verdict(found).whole


@pytest.mark.parametrize(
    ("series", "facts", "said"),
    [
        ([(t, v) for t, v in every(10, 300) if t <= 300], {}, "samples are known of 50 % of it"),
        ([(t, v) for t, v in every(10, 300) if not 100 <= t <= 400], {}, "samples are known of 47 % of it"),
        (every(10, 300), {"chips": 4}, "A token's energy is that of 4 chips"),
    ],
)
def test_a_token_of_a_server_takes_what_all_chips_draw_all_the_time(series, facts, said):
    """All tokens count, and so does the energy of chips and of times of which there are no samples."""
    found = asked(gpu(0, "power", series), facts, requests=SERVED)
    assert found.token_j == pytest.approx(30 * facts.get("chips", 1)) and any(said in note for note in found.notes)


def test_a_token_has_no_energy_where_chips_were_sampled_at_another_time():
    later = {k: [v + 50_000 * S for v in vs] if k != "output_tokens" else vs for k, vs in SERVED.items()}
    found = asked(gpu(0, "power", every(10, 300)), requests=later)
    assert found.window == "samples" and found.token_j is None and "oken" not in words.verdict(found).whole


@pytest.mark.parametrize("rows", [[(T0, "loss", 1.0, None, "x")], gpu(0, "SM clock", every(10, 1700), unit="MHz")])
def test_nothing_told_is_said(rows):
    with pytest.raises(QuestionError, match="no input tells how much power"):
        asked(rows)


def test_samples_without_a_time_are_told_as_such():
    with pytest.raises(QuestionError, match="name no time"):
        asked([(None, *row[1:]) for row in gpu(0, "power", every(10, 500))])
    with pytest.raises(QuestionError, match="name no time"):
        asked([(None, *row[1:]) for row in gpu(0, "power", every(10, 500))] + gpu(0, "SM clock", every(10, 1700)))


def test_one_sample_is_no_energy():
    with pytest.raises(QuestionError, match="sampled once"):
        asked(gpu(0, "power", [(0, 500)]))


def test_values_that_are_none():
    rows = gpu(0, "power", [(0, 500), (10, math.nan), (20, math.inf), (30, -5), (40, 500), (50, 500), (60, 500)])
    found = asked(rows)
    assert found.energy_j == pytest.approx(500 * 60) and found.highest_watts == 500
