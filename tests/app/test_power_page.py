"""The power page: of chips of which one is held down by heat, and of a run that tells nothing."""

import pytest

from app.pages.all import pages_of
from app.questions.power import POWER
from app.questions.power.figure import slowed_rows, watts_of_chips
from app.questions.power.words import energy, table
from tests.analyzers.test_power import asked, every, gpu, machine, scalars, steps
from tests.app import made_runs
from tests.app.test_pages import ODD, opened, words

PAGE = "questions/power/page.py"


@pytest.mark.parametrize(
    ("joules", "told"),
    [(None, "–"), (0.0005, "0.500 mJ"), (0.5, "500 mJ"), (412, "412 J"), (7200, "7.20 kJ"), (4.5e6, "1.25 kWh")],
)
def test_energy_in_words(joules, told):
    assert energy(joules) == told


def test_pictures_hold_the_numbers():
    result = asked([*machine(), *gpu(0, "power", every(10, 500), host=ODD)])
    mean, more = watts_of_chips(result).data
    at = list(mean.y).index("chip 3 of n1")
    assert mean.x[at] == pytest.approx(525) and mean.x[at] + more.x[at] == 600
    assert "<" not in "".join(mean.y).replace("&lt;", "")
    assert slowed_rows(result)["by"].tolist() == ["heat (hardware)"] and len(table(result).rows) == 9


def test_the_page(place):
    tables = {"scalars": scalars(*machine()), "steps": steps()}
    run = made_runs.write(place.store, "hot", {k: {n: list(c) for n, c in t.items()} for k, t in tables.items()}, {})
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning
    assert "Chip 3 of n1 ran at" in words(at) and "Chip 3 of n1" in POWER.verdict(asked([*machine()], steps=steps()))
    at.number_input(key="pick_usd_per_kwh").set_value(0.12).run()
    assert at.query_params["usd_per_kwh"] == "0.12" and "($0." in words(at)


def test_it_stands_in_the_menu_of_runs_that_may_tell_of_power_alone(place):
    run = made_runs.interrupted(place.store)
    assert not POWER.tells_of(run) and POWER not in pages_of(run)
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and "no input tells how much power a chip drew" in words(at)
