"""What is drawn apart has a place of its own: of every page it is tested where that is opened (`test_pages.py`)."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from app.pages.library.acting import ASKED, DIALOGS
from app.pages.library.welcome import STARTS
from tests.app import made_runs
from tests.app.fragments import all_out_of_place, parts, sent  # noqa: F401 - a fixture
from tests.app.serving import PROJECT
from tests.app.test_pages import MAIN, SECONDS, opened


def test_the_first_page_stands_where_one_of_its_cards_is_drawn_again_at_once(place, sent):  # noqa: F811
    for start in STARTS:
        place.demo.add(made_runs.interrupted(place.store, start.run).run_id)
    assert len(opened().get("page_link")) >= len(STARTS)
    assert len(parts(sent)) > len(STARTS)
    assert all_out_of_place(sent) == []


@pytest.mark.parametrize("act", DIALOGS)
def test_a_dialog_of_the_list_stands_where_the_list_is_drawn_again_at_once(place, sent, act):  # noqa: F811
    run = made_runs.interrupted(place.store)
    at = AppTest.from_file(MAIN, default_timeout=SECONDS)
    at.session_state[ASKED] = act, [run.run_id]
    assert not at.run().exception
    assert any(m.delta.add_block.HasField("dialog") for m in sent)
    assert all_out_of_place(sent) == []


def test_all_that_is_drawn_apart_has_a_place_of_its_own():
    files = [p for p in (PROJECT / "app").rglob("*.py") if re.search(r"\bst\.fragment\b", p.read_text())]
    assert [p.name for p in files] == ["by_itself.py"]
