"""Every page as Streamlit runs it: with no run, with a run, with a run that is not there, with odd text in it."""

import functools
import gc
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.pages.all import every_page
from app.workspace import STORE_VARIABLE, workspace
from tests.app import made_runs
from tests.app.fragments import all_out_of_place, sent  # noqa: F401 - a fixture
from tests.app.serving import PROJECT

MAIN = str(PROJECT / "app" / "main.py")
ODD = "<img src=x onerror=alert(1)> *run* $5 :red[x] http://e.example #1"
SECONDS = 30


@functools.cache
def _menu() -> dict:
    """The pages that the application lists, as Streamlit keeps them once it has run."""
    return AppTest.from_file(MAIN, default_timeout=SECONDS).run()._registered_pages


def opened(page: str = "", **address: str) -> AppTest:
    """The page as a visitor with this address sees it. Only the page itself is drawn: Streamlit's own helper finds a
    page by the list that a run before left behind, and that is handed on here instead of drawing the library for it."""
    at = AppTest.from_file(MAIN, default_timeout=SECONDS)
    if page:
        at._registered_pages = _menu()
        at.query_params.update(address)
        at.switch_page(page)
    return at.run()


def words(at: AppTest) -> str:
    parts = [e.value for kind in (at.markdown, at.subheader, at.info, at.warning, at.caption) for e in kind]
    return "\n".join(parts).replace("\\", "")


@pytest.fixture
def run(place):
    return made_runs.interrupted(place.store)


@pytest.mark.parametrize("page", [""] + [p.file for p in every_page()])
def test_every_page_stands_with_an_empty_store(place, page):
    at = opened(page)
    assert not at.exception
    assert words(at)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A store with a run of which one page after another is opened."""
    place = workspace(str(tmp_path_factory.mktemp("kept") / "store"))
    return place, made_runs.interrupted(place.store)


@pytest.mark.parametrize("page", [p.file for p in every_page()])
def test_every_page_stands_with_a_run_and_where_a_part_of_it_is_drawn_again_at_once(kept, monkeypatch, sent, page):  # noqa: F811
    place, run = kept
    monkeypatch.setenv(STORE_VARIABLE, str(place.store.root))
    at = opened(page, run=run.run_id)
    assert not at.exception and not at.warning
    assert all_out_of_place(sent) == []


@pytest.mark.parametrize("page", ["questions/ledger/page.py", "questions/steps/page.py"])
def test_an_unknown_run_is_told_kindly(place, run, page):
    at = opened(page, run="ffffffffffff")
    assert not at.exception
    assert "no run 'ffffffffffff' in this store" in words(at)


@pytest.mark.parametrize("page", ["questions/ledger/page.py", "questions/steps/page.py"])
def test_no_run_leads_to_the_library(place, page):
    assert "No run is chosen yet" in words(opened(page))


def test_an_empty_library_teaches(place):
    at = opened()
    assert "No runs yet" in words(at)
    assert "jax.profiler.start_trace" in at.code[0].value
    assert "chipledger ingest" in at.code[1].value


def test_search_finds_by_name_chip_model_and_tag(place, run):
    made_runs.write(place.store, "other", {"scalars": {"name": ["x"], "value": [1.0]}}, {"chip": "TPU v6e"})
    found = {
        "": "2 runs",
        "LLAMA v5p": "1 run of 2",
        "v6e": "1 run of 2",
        "pretraining": "1 run of 2",
        "llama v6e": "0 runs of 2",
    }
    for text, count in found.items():
        at = opened()
        at.text_input(key="search").set_value(text).run()
        assert not at.exception
        assert count in [caption.value for caption in at.caption]
        assert at.query_params.get("q", "") == text


def test_the_ledger_page_says_the_verdict_before_the_figures(place, run):
    at = opened("questions/ledger/page.py", run=run.run_id)
    assert "74 % of 484 chip-hours went into steps that were kept" in words(at)
    shown = {m.label.split(" ●")[0].split(" ◐")[0].split(" ▨")[0]: m.value for m in at.metric}
    assert shown == {
        "Chip time held": "484 chip-hours",
        "Goodput": "73.8 %",
        "Useful maths": "33.1 %",
        "Interruptions": "1",
        "Cannot be told": "40.7 %",
    }
    assert all(m.help for m in at.metric)
    table = at.dataframe[0].value
    assert table["Share"].iloc[0] == 100
    parts = table[table["Account"].str.count("\u2003") == 1]
    assert parts["Chip-seconds"].sum() == pytest.approx(table["Chip-seconds"].iloc[0])
    assert "Missing: a profile" in words(at)


def test_a_price_gives_every_account_dollars_and_stays(place, run):
    at = opened("questions/ledger/page.py", run=run.run_id)
    assert "Dollars" not in at.dataframe[0].value
    at.number_input(key=f"price {run.run_id}").set_value(4.2).run()
    at.button(key="price save").click().run()
    assert not at.exception
    assert place.registry.extras(run.run_id).usd_per_chip_hour == 4.2
    assert at.dataframe[0].value["Dollars"].iloc[0] == pytest.approx(1741824 / 3600 * 4.2)
    assert "about $275" in words(at)
    at.button(key="price remove").click().run()
    assert not at.exception
    assert "Dollars" not in at.dataframe[0].value


def test_the_address_chooses_view_and_account(place, run):
    at = opened("questions/ledger/page.py", run=run.run_id, view="waterfall", account="badput.wasted_progress")
    assert at.button_group(key="switch_view").value == "waterfall"
    assert "Wasted progress: 11.4 chip-hours, 2.35 % of the whole" in words(at)
    assert not opened("questions/ledger/page.py", run=run.run_id, view="nonsense", account="no.such").exception


def test_opening_a_part_writes_the_address(place, run):
    at = opened("questions/ledger/page.py", run=run.run_id)
    at.selectbox(key="open ").set_value("badput").run()
    assert at.query_params["account"] == "badput"
    at.button(key="crumb ").click().run()
    assert "account" not in at.query_params


def test_text_from_inputs_is_never_markup(place):
    tables = {"steps": {"step": [0, 1], "start_ns": [0, 10**9], "dur_ns": [10**9] * 2, "source": ["x"] * 2}}
    run = made_runs.write(
        place.store, ODD, tables, {"chip": ODD, "chips": 2, "model": ODD}, tags={"k": ODD}, warnings=[ODD]
    )
    for page in ("questions/ledger/page.py", "questions/steps/page.py"):
        at = opened(page, run=run.run_id)
        assert not at.exception
        raw = "\n".join(e.value for kind in (at.markdown, at.subheader) for e in kind)
        assert ODD not in raw
        assert "\\<img src\\=x onerror\\=alert\\(1\\)\\> \\*run\\* \\$5 \\:red\\[x\\]" in raw
        assert "://" not in raw.replace("\\", "")


def test_a_simulated_run_is_marked_on_its_pages(place):
    tables = {"steps": {"step": [0, 1], "start_ns": [0, 10**9], "dur_ns": [10**9] * 2, "source": ["x"] * 2}}
    run = made_runs.write(place.store, "what if", tables, {"chips": 2}, kind="simulated")
    for page in ("questions/ledger/page.py", "questions/steps/page.py"):
        assert "simulated: nobody ran this" in words(opened(page, run=run.run_id))


def test_the_steps_page(place, run):
    at = opened("questions/steps/page.py", run=run.run_id)
    assert "A usual step takes 20.0 s" in words(at) and "9 steps were lost and taken again" in words(at)
    assert [m.value for m in at.metric] == ["251", "20.0 s", "20.0 s", "–", "207"]
    assert len(at.dataframe[0].value) == 260


def test_a_run_without_steps_says_which_input_would_bring_them(place):
    run = made_runs.write(place.store, "bare", {"scalars": {"name": ["x"], "value": [1.0]}}, {})
    for page in ("questions/ledger/page.py", "questions/steps/page.py"):
        at = opened(page, run=run.run_id)
        assert not at.exception and len(at.warning) + len(at.info) == 1
        assert "this run has no steps" in words(at)
    assert "Missing: a training log with step lines" in words(at)


def test_a_store_that_cannot_be_used_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "file"))
    at = opened()
    assert not at.exception
    assert "cannot use this folder as a store" in words(at)


def test_a_broken_manifest_is_told_and_the_other_runs_stay(place, run):
    broken = made_runs.interrupted(place.store, "broken")
    Path(broken.folder / "run.json").write_text("{")
    at = opened("questions/ledger/page.py", run=broken.run_id)
    assert not at.exception and "not a run manifest" in words(at)
    assert not opened("questions/ledger/page.py", run=run.run_id).exception
    library = opened()
    assert not library.exception
    assert "1 run" in words(library) and "not a run manifest" in words(library)


def test_what_the_first_page_brought_is_looked_through_once(place):
    opened()
    frozen = gc.get_freeze_count()
    opened("pages/definitions/page.py")
    assert 50_000 < gc.get_freeze_count() <= frozen, "drawings after the first add nothing: what they hold must go"
