"""Chips that heat or a lowered power limit holds down: a finding where steps took longer meanwhile, and only there."""

import pytest

from app.questions.asking import ask
from app.questions.findings import FINDINGS
from tests.analyzers.test_power import HEAT, LIMIT, T0, every, gpu, scalars
from tests.app import made_runs
from tests.app.made_runs import S

CAUSES = {"heat", "power_limit"}


def rows(by, limit=700, slow_from=300, share=100.0, clocks=None):
    for d in range(4):
        if clocks is not None:
            yield from gpu(d, "SM clock", [(t, clocks[t >= slow_from]) for t in range(0, 601, 10)], unit="MHz")
        yield from gpu(d, "power", every(10, 600))
        yield from gpu(d, "power limit", every(10, limit))
        down = [(t, share * (t >= slow_from and (d == 2 or by == LIMIT))) for t in range(0, 601, 10)]
        yield from gpu(d, f"slowed down by {by}", down, unit="%")


def told(place, samples, slow_s=1.5):
    took = [S] * 300 + [round(slow_s * S)] * round(300 / slow_s)
    tables = {"steps": made_runs.step_columns(took, T0)}
    if samples:
        tables["scalars"] = {name: list(column) for name, column in scalars(*samples).items()}
    run = made_runs.write(place.store, "held down", tables, {"chips": 4, "chip": "H100 SXM"})
    return ask(FINDINGS, run, {}, place.registry)


def test_heat_that_made_steps_longer(place):
    result = told(place, [*rows(HEAT)])
    [heat] = [f for f in result.findings if f.cause == "heat"]
    assert heat.gain is not None and heat.gain.likely == pytest.approx(400) and heat.question == "power"
    assert heat.where.hosts == ("n1",) and "one chip down (heat (hardware)): steps take 1.50 times" in heat.title
    assert "power_limit" in {out.cause for out in result.ruled_out}
    assert "step_change" not in {one.cause for one in (*result.findings, *result.ruled_out)}


def test_a_power_limit_only_where_it_was_lowered(place):
    lowered = told(place, [*rows(LIMIT, limit=500)])
    assert "power_limit" in {f.cause for f in lowered.findings}
    busy = told(place, [*rows(LIMIT, limit=700)])
    assert "power_limit" not in {f.cause for f in busy.findings}
    assert any("as busy ones do" in out.why for out in busy.ruled_out if out.cause == "power_limit")


def test_steps_that_heat_and_a_limit_hold_down_at_once_are_told_once(place):
    """Both were told of the same 200 steps, and twice their 400 chip-seconds promised."""
    result = told(place, [*dict.fromkeys([*rows(HEAT, limit=500), *rows(LIMIT, limit=500)])])
    [found] = [f for f in result.findings if f.cause in CAUSES]
    assert found.cause == "heat" and found.gain is not None and found.gain.likely == pytest.approx(400)
    assert result.joint[-1] <= 400 * 1.01
    apart = [*rows(HEAT, limit=500, slow_from=450), *rows(LIMIT, limit=500)]
    result = told(place, [*dict.fromkeys(apart)])
    assert {f.cause for f in result.findings} & CAUSES == CAUSES and result.joint[-1] <= 400 * 1.01


@pytest.mark.parametrize(("by", "limit"), [(HEAT, 700), (LIMIT, 500)])
def test_no_more_is_told_of_clocks_than_they_are_lower(place, by, limit):
    """Steps of longer sequences take longer, and draw more: half as long again with clocks 3 % lower was told as that
    limit's, with all that they took more, and no other change of pace."""
    result = told(place, [*rows(by, limit=limit, clocks=(1755, 1700))])
    assert not CAUSES & {f.cause for f in result.findings} and "step_change" in {f.cause for f in result.findings}
    assert any("held down by 3.13 %, which is not why" in out.why for out in result.ruled_out)
    lower = told(place, [*rows(by, limit=limit, clocks=(1700, 1360))])
    [found] = [f for f in lower.findings if f.cause in CAUSES]
    bound = 4 * 200 * 1.5 * (1 - 1360 / 1700)
    assert found.gain is not None and found.gain.likely == pytest.approx(bound)


def test_steps_no_longer_and_nothing_sampled(place):
    alike = told(place, [*rows(HEAT)], slow_s=1.0)
    assert not CAUSES & {f.cause for f in alike.findings}
    assert any("told from chance" in out.why for out in alike.ruled_out if out.cause == "heat")
    nothing = told(place, [])
    assert not CAUSES & ({f.cause for f in nothing.findings} | {out.cause for out in nothing.ruled_out})
