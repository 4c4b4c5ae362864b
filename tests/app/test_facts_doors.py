"""Facts over every door, command line, API, agents and pages: each tells the same, and what one said all know."""

import json
import os
import urllib.error
import urllib.request

import pytest

from app.mcp.calling import call
from app.mcp.tools import tool
from app.pages.facts.landing import landing
from app.serve.requests import BODY_BYTES
from collectors.ingest import ingest
from runs.store import Store
from tests.app.commands import out
from tests.app.serving import get, serving
from tests.app.test_facts import a_log, stored
from tests.app.test_pages import opened, words


@pytest.fixture
def run(place, tmp_path):
    return stored(place, a_log(), tmp_path)


def test_the_command_lists_says_and_takes_back(place, run, capsys, monkeypatch):
    monkeypatch.setenv("USER", "ann"), monkeypatch.setenv("LOGNAME", "ann")
    code, text, _ = out(capsys, "facts", "train")
    assert code == 0 and "chip: MFU, useful maths" in text and "perhaps TPU v5p: 250 TFLOP/s a device is 54 %" in text
    code, text, _ = out(capsys, "facts", "train", "chip=v5p", "chips=4", "--json")
    told = json.loads(text)
    known = {f["name"]: f for f in told["facts"]}
    assert code == 0 and known["chip"]["value"] == "TPU v5p" and known["chips"]["value"] == 4
    assert known["chip"]["who"] == "ann" and known["chip"]["when_ns"] > 1e18
    assert [h["name"] for h in told["history"]] == ["chips", "chip"]
    assert "54.5 % of the chips' peak" in out(capsys, "show", "train", "mfu")[1]
    code, text, _ = out(capsys, "facts", "train", "chip=", "--who", "bo")
    assert code == 0 and "chip taken back  by bo" in text and "4" in text
    assert "no input tells" in out(capsys, "show", "train", "mfu")[1]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("chip", "name=value"),
        ("chipp=v5p", "Did you mean 'chip'"),
        ("chips=0", "a whole number from 1"),
        ("chip=" + "x" * 10_000, "no chip is called"),
        ("model=nothing-9b", "no model is called"),
    ],
)
def test_the_command_refuses_in_one_sentence(place, run, capsys, said, why):
    code, text, error = out(capsys, "facts", "train", said)
    assert code == 2 and text == "" and why in error and len(error.splitlines()) == 1 and len(error) < 500
    assert place.registry.declarations(run.run_id) == []


def test_a_fact_said_twice_in_one_call_is_refused(place, run, capsys):
    code, _, error = out(capsys, "facts", "train", "chips=4", "chips=8")
    assert code == 2 and "said twice" in error


def test_a_config_json_is_read_as_the_model(place, run, capsys, tmp_path):
    config = {"name": "own", "layers": 2, "d_model": 64, "vocab": 100, "heads": 4, "d_ff": 128}
    (tmp_path / "config.json").write_text(json.dumps(config))
    code, _, error = out(capsys, "facts", "train", f"model={tmp_path / 'config.json'}")
    assert code == 0, error
    assert place.store.find("train").manifest.fact("model") == config


def test_a_registry_that_cannot_be_written_is_told_in_one_sentence(place, run, capsys):
    if os.geteuid() == 0:
        path = place.registry.path
        path.unlink()
        path.mkdir()  # whoever may write everywhere cannot write this
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
    else:
        place.registry.path.chmod(0o400)
    code, _, error = out(capsys, "facts", "train", "chip=v5p")
    assert code == 2 and "registry cannot be" in error and len(error.splitlines()) == 1


def test_agents_are_told_the_same(place, run, capsys):
    said = json.loads(call(tool("facts"), {"run": "train"}, place))
    assert said["answer"]["missing"][0]["name"] == "chip" and "missing that would tell more" in said["says"]
    code, text, _ = out(capsys, "facts", "train", "--json")
    assert code == 0 and json.loads(text) == said["answer"]


def patch(address: str, body: object, **headers: str):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(address, data=data, method="PATCH", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    (folder / "train.log").write_text(a_log())
    run_id = ingest([folder / "train.log"], Store(folder / "store")).run_id
    with serving(folder / "store") as address:
        yield f"{address}/api/runs/{run_id}"


def test_a_fact_said_over_http_is_told_by_every_answer_at_once(served):
    assert get(f"{served}/show/mfu")[1]["mfu"] is None
    code, told = patch(f"{served}/facts", {"chip": "v5p", "chips": 4, "usd_per_chip_hour": 2.5, "who": "ann"})
    assert code == 200 and {f["name"]: f["who"] for f in told["facts"]}["chip"] == "ann"
    assert get(f"{served}/facts")[1] == told
    assert get(f"{served}/show/mfu")[1]["mfu"] == pytest.approx(250 / 459)
    ledger = get(f"{served}/show/ledger")[1]
    assert ledger["account"]["chip_seconds"] == pytest.approx(48) and ledger["chips"] == 4
    one = get(served)[1]
    assert one["chips_text"] == "4 × TPU v5p" and one["usd_per_chip_hour"] == 2.5
    code, told = patch(f"{served}/facts", {"chip": None, "chips": None, "usd_per_chip_hour": None})
    assert code == 200 and get(f"{served}/show/mfu")[1]["mfu"] is None
    assert len(told["history"]) == 6 and get(served)[1]["chips_text"] == "chips unknown"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "no JSON"),
        (b"[1]", "no JSON object"),
        (b'{"chips": NaN}', "a whole number"),
        (b'{"chips": Infinity}', "a whole number"),
        ({"chips": -1}, "a whole number"),
        ({"chipz": 1}, "Did you mean"),
        ({"chip": "a\nb"}, "printable"),
        ({"chip": 7}, "printable"),
        ({"chip": "v5p", "who": "a\nb"}, "one line"),
        (b'{"chip": "v5p", "chip": "v5e"}', "given twice"),
        ({"model": {"layers": {}}}, ""),
        ({"chip": "x" * BODY_BYTES}, "more than 262,144 bytes"),
    ],
)
def test_a_request_that_says_what_cannot_be_is_refused_in_one_sentence(served, body, why):
    before = get(f"{served}/facts")[1]["history"]
    code, told = patch(f"{served}/facts", body)
    assert code == 400 and set(told) == {"error"} and why in told["error"] and len(told["error"]) < 500
    assert get(f"{served}/facts")[1]["history"] == before


def test_a_page_of_another_site_may_not_say_anything(served):
    assert patch(f"{served}/facts", {"chip": "v5p"}, Origin="http://elsewhere.example")[0] == 403


def test_a_run_that_is_not_there_is_not_found(served):
    assert patch(f"{served[:-8]}nothing/facts", {"chip": "v5p"})[0] == 404


def test_where_a_run_lacks_a_headline_its_facts_are_shown_first(place, run, tmp_path):
    page, told = landing(run.run_id, place)
    assert page.name == "facts" and told["run"] == run.run_id
    place.registry.declare(run.run_id, {"chip": "TPU v5p", "chips": 4})
    assert landing(run.run_id, place)[0].name == "findings"
    assert landing("nothing", place)[0].name == "findings"


def test_the_page_asks_for_the_chip_and_tells_mfu_once_it_is_said(place, run):
    at = opened("pages/facts/page.py", run=run.run_id)
    assert "One answer below tells MFU and useful maths" in words(at)
    at.button(key="guess chip TPU v5p").click().run()
    assert not at.exception
    assert "Now told: MFU." in words(at) and "54.5 % of the chips" in words(at)
    at.button(key="back chip").click().run()
    assert place.store.find("train").manifest.fact("chip") is None


def test_a_page_that_lacks_the_chip_asks_for_it_where_it_stands(place, run):
    at = opened("questions/mfu/page.py", run=run.run_id)
    assert "Which chip ran this?" in words(at) and "no input tells" in words(at)
    at.button(key="ask mfu chip TPU v5p").click().run()
    assert not at.exception
    assert "Which chip ran this?" not in words(at) and "54.5 %" in words(at)


def test_what_contradicts_stands_on_every_page_with_the_way_to_mend_it(place, tmp_path):
    run = stored(place, a_log(config="Num_devices: 32, foo\n"), tmp_path)
    place.registry.declare(run.run_id, {"chips": 64, "chip": "TPU v5p"})
    at = opened("questions/mfu/page.py", run=run.run_id)
    assert "You said 64 chips; the files show 32" in words(at)


def test_hostile_words_of_who_say_are_shown_as_they_are(place, run):
    place.registry.declare(run.run_id, {"chips": 4}, "<img src=x onerror=alert(1)>")
    at = opened("pages/facts/page.py", run=run.run_id)
    assert not at.exception and all("<img" not in m.value for m in (*at.markdown, *at.caption))
