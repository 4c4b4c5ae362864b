"""`whatif serving-plan`: the contract on the command line and over HTTP, and its page."""

import json

import pytest

from app.cli import main
from app.whatif.serving_plan import SERVING_PLAN
from app.whatif.serving_plan.answers import prices
from collectors.ingest import ingest
from errors import QuestionError
from runs.store import Store
from tests.app.test_pages import opened, words

QUERY = {
    "model": "llama3.1-8b",
    "on": "h100,v6e",
    "input": "500",
    "output": "100",
    "rate": "20",
    "ttft_s": "1",
    "tpot_s": "0.03",
}


def test_the_contract(capsys):
    arguments = [f"--{k.replace('_', '-')}={v}" for k, v in QUERY.items()]
    assert main(["whatif", "serving-plan", *arguments, "--price", "h100=3,v6e=2.7", "--disaggregate", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    first = told["choices"][0]
    assert first["feasible"] and first["basis"] == "simulated" and first["usd_per_hour"] > 0
    assert "no objective holds the wait" not in told["verdict"]
    assert told["basis"] == "modelled" and told["disaggregated"]["splits"]
    assert main(["whatif", "serving-plan", *arguments]) == 0
    assert "serves it" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        {"model": None},
        {"on": "nothing"},
        {"on": ","},
        {"rate": "-1"},
        {"prefix": "500"},
        {"price": "h100"},
        {"price": "h100=-3"},
        {"formats": "fp64"},
    ],
)
def test_what_cannot_be_asked(change):
    query = {k: v for k, v in {**QUERY, **change}.items() if v is not None}
    with pytest.raises(QuestionError):
        SERVING_PLAN.answer(SERVING_PLAN.from_query(query), None)


def test_prices_are_read_by_any_name():
    assert prices("h100=3.5, v6e=2.7") == {"H100 SXM": 3.5, "TPU v6e": 2.7}
    assert prices(None) == {}


def test_the_page(place):
    at = opened("pages/serving_planner/page.py", **QUERY, price="h100=3,v6e=2.7")
    assert not at.exception and "serves it" in words(at)
    assert at.metric[0].value.isdigit()
    table = at.dataframe[0].value
    assert (table["why"].str.len() > 0).all() and "tips_at_usd_per_chip_hour" not in table.columns[:3]


def test_the_page_teaches_where_the_address_is_wrong(place):
    at = opened("pages/serving_planner/page.py", **{**QUERY, "rate": "many"})
    assert not at.exception and "a number" in words(at)
    assert not opened("pages/serving_planner/page.py").exception  # an example


def test_calibrated_on_a_run_its_chip_has_no_assumed_range(tmp_path, capsys):
    made = {
        "model": "llama3.1-8b",
        "chip": "h100",
        "chips": "1",
        "input": "500",
        "output": "80",
        "rate": "12",
        "requests": "200",
    }
    arguments = [f"--{k}={v}" for k, v in made.items()]
    assert main(["whatif", "serving", *arguments, "--out", str(tmp_path / "out")]) == 0
    store = Store(tmp_path / "store")
    run_id = ingest([tmp_path / "out"], store).run_id
    capsys.readouterr()
    asked = [f"--{k.replace('_', '-')}={v}" for k, v in QUERY.items()]
    assert main(["--store", str(store.root), "whatif", "serving-plan", *asked, "--calibrate", run_id, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    simulated = {c["chip"]: c for c in told["choices"] if c["basis"] == "simulated"}
    assert simulated["H100 SXM"]["chips_low"] is None and simulated["TPU v6e"]["chips_low"] is not None
    assert any("is calibrated on" in note and "held back" in note for note in told["notes"])
