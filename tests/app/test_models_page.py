"""The page of models, and the ways between the ledger and the pages that explain its accounts."""

import pytest

from app.components.header import slice_of
from app.groups import GROUPS
from app.pages.all import every_page, grouped, pages_of
from app.pages.compare import COMPARE
from app.pages.facts import FACTS
from app.pages.models.figure import taxes
from app.pages.query import QUERY
from app.questions import QUESTIONS
from app.questions.compiled import COMPILED
from app.questions.mfu import MFU
from app.questions.slowdown import SLOWDOWN
from catalog.models import models
from runs.accounts import ACCOUNTS
from tests.app import made_runs
from tests.app.menus import menu
from tests.app.test_pages import opened, words


def test_the_page_names_the_model_that_pads_most_and_leads_to_every_model(place):
    at = opened("pages/models/page.py")
    assert not at.exception
    assert "gpt2-1.5b pads most" in words(at)
    rows = at.dataframe[0].value
    assert list(rows["Model"]) == list(models())
    assert rows["Padding"].iloc[0] == f"/padding?model={rows['Model'].iloc[0]}"


def test_the_matrix_unit_is_a_choice_in_the_address(place):
    wide, narrow = (words(opened("pages/models/page.py", mxu=side)) for side in ("256", "128"))
    assert "256 x 256" in wide and "128 x 128" in narrow


def test_bars_stand_in_the_order_of_the_tax_and_their_parts_sum_to_it():
    figure = taxes({"small": (0.0, 0.02), "large": (0.2, 0.5), "none": (0.0, 0.0)})
    low, rest = figure.data
    assert list(low.y) == ["large", "small", "none"]
    assert [a + b for a, b in zip(low.x, rest.x, strict=True)] == pytest.approx([50, 2, 0])
    assert list(rest.text) == ["50.0 %", "2.00 %", "none"]


def test_every_account_that_has_a_page_leads_to_one_that_exists():
    explained = [account for q in QUESTIONS for account in q.explains]
    assert len(explained) > 20 and set(explained) <= set(ACCOUNTS)
    assert len(set(explained)) == len(explained), "an account leads to one page"
    assert all(q.file for q in QUESTIONS if q.explains)


def test_an_opened_account_links_to_the_page_that_explains_it(place):
    run = made_runs.interrupted(place.store)
    at = opened("questions/ledger/page.py", run=run.run_id, account="productive.useful_maths")
    assert not at.exception
    assert MFU.explains["useful_maths"] in [link.proto.label for link in at.get("page_link")]
    plain = opened("questions/ledger/page.py", run=run.run_id, account="badput.infrastructure_recovery")
    assert MFU.explains["useful_maths"] not in [link.proto.label for link in plain.get("page_link")]


def files(run):
    return tuple(p.file for p in pages_of(run))


def test_a_serving_run_is_asked_about_serving(place):
    served = made_runs.write(place.store, "s", {"requests": {"id": ["a"], "status": ["completed"]}}, {}, kind="serving")
    assert files(served) == (
        "questions/findings/page.py",
        "questions/ledger/page.py",
        "questions/timeline/page.py",
        "questions/latency/page.py",
        "questions/objectives/page.py",
        "questions/load/page.py",
        "questions/traffic/page.py",
        "questions/kv_cache/page.py",
        "questions/speculation/page.py",
        "questions/prefix_cache/page.py",
        "pages/compare/page.py",
        "pages/facts/page.py",
        "pages/query/page.py",
    )
    profiled = made_runs.write(place.store, "t", {"engine": {"running": [1]}, "ops": {"op": ["a"]}}, {}, kind="serving")
    assert {"questions/engine/page.py", "questions/operations/page.py"} <= set(files(profiled))
    assert "questions/goodput/page.py" not in files(profiled)


def test_a_compiled_run_is_asked_nothing_that_only_a_clock_could_tell(place):
    measured = made_runs.interrupted(place.store)
    compiled = made_runs.write(place.store, "c", {"ops": {"role": ["compute"], "op": ["a"]}}, {}, kind="compiled")
    pipeline = made_runs.write(place.store, "p", {"pipeline": {"step": [1], "op_type": ["gc"]}}, {})
    asked = tuple(q.file for q in QUESTIONS if q.about.get("job") == ())
    always = (*asked, FACTS.file, QUERY.file)
    assert files(measured) == (*asked, COMPARE.file, FACTS.file, QUERY.file), "it has steps to be compared"
    assert set(files(pipeline)) == {*always, SLOWDOWN.file}
    assert pages_of(compiled)[0] is COMPILED
    timed = {"goodput", "interruptions", "checkpoints", "steps", "mfu", "overlap", "input", "stragglers", "slowdown"}
    assert not timed & {p.name for p in pages_of(compiled)}


def test_links_stand_in_groups_and_what_cannot_be_told_is_grey_and_says_why(place):
    run = made_runs.write(place.store, "t", {"modules": {"name": ["Linear"]}, "ops": {"op": ["a"]}}, {})
    assert not {"hlo", "heap"} & {p.name for p in pages_of(run)}, "PyTorch names modules and keeps no program"
    groups = grouped(run)
    assert [(p.name, tells) for p, tells in groups["Program"]] == [(n, False) for n in ("hlo", "hlo_graph", "hlo_diff")]
    assert [p.name for p, _ in groups["Overview"]] == ["findings", "ledger", "timeline", "compare"]
    assert [p.name for p, _ in groups["More"]] == ["facts", "query"]
    pages = {p.name for p in every_page()} | {q.name for q in QUESTIONS}
    assert {n for names in GROUPS.values() for n in names.split()} <= pages
    links = menu(opened("questions/steps/page.py", run=run.run_id))
    assert "No program is kept with this run" in links["HLO"]["why"]
    assert "flight recorder" in links["Hangs"]["why"]
    assert links["Operations"]["why"] == "" and links["Operations"]["href"] == f"/operations?run={run.run_id}"


@pytest.mark.parametrize(
    ("facts", "spec"),
    [
        ({"chip": "v6e", "topology": "v6e:4x4", "slices": 2}, "v6e:4x4:slices=2"),
        ({"chip": "v5p", "topology": "4x4x8"}, "v5p:4x4x8"),
        ({"chip": "v5p", "topology": "3x3x3"}, None),
        ({"topology": "4x4x8"}, None),
        ({"chip": "h100"}, None),
        ({"chip": "cpu-process", "topology": "data=2,model=2", "slices": "two"}, None),
    ],
)
def test_a_run_leads_to_its_slice_in_the_topology_lab(place, facts, spec):
    assert slice_of(made_runs.write(place.store, "r", {"ops": {"role": ["compute"], "op": ["a"]}}, facts)) == spec
