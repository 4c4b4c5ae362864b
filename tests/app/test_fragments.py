"""What is drawn apart. Where a part is drawn again before its first drawing was sent, Streamlit drops what waits of it;
all that the page drew beside it must still find its place in the browser."""

import re

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.testing.v1 import local_script_runner

from app.pages.all import every_page
from app.pages.library.welcome import STARTS
from app.workspace import STORE_VARIABLE, workspace
from tests.app import made_runs
from tests.app.serving import PROJECT
from tests.app.test_pages import opened


@pytest.fixture
def sent(monkeypatch):
    """What was sent of the page drawn last."""
    found: list[ForwardMsg] = []
    read = local_script_runner.parse_tree_from_messages

    def watched(messages: list[ForwardMsg]):
        found[:] = messages
        return read(messages)

    monkeypatch.setattr(local_script_runner, "parse_tree_from_messages", watched)
    return found


def parts(sent: list[ForwardMsg]) -> list[str]:
    """The parts that are drawn apart."""
    return sorted({m.delta.fragment_id for m in sent} - {""})


def out_of_place(sent: list[ForwardMsg], part: str) -> list[list[int]]:
    """Where a browser would have to put something behind nothing, once what waits of a part was dropped."""
    queue = ForwardMsgQueue()
    for message in sent:
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[part])
    held: dict[tuple[int, ...], int] = {}  # how much stands in each block
    wrong = []
    for message in queue.flush():
        if message.WhichOneof("type") == "delta":
            *within, at = path = list(message.metadata.delta_path)
            if len(path) > 1 and at > held.get(tuple(within), 0):
                wrong.append(path)
            held[tuple(within)] = max(held.get(tuple(within), 0), at + 1)
    return wrong


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    place = workspace(str(tmp_path_factory.mktemp("kept") / "store"))
    return place, made_runs.interrupted(place.store)


@pytest.mark.parametrize("page", [p.file for p in every_page()])
def test_a_page_stands_where_a_part_is_drawn_again_at_once(kept, monkeypatch, sent, page):
    place, run = kept
    monkeypatch.setenv(STORE_VARIABLE, str(place.store.root))
    assert not opened(page, run=run.run_id).exception
    assert [wrong for part in parts(sent) for wrong in out_of_place(sent, part)] == []


def test_so_does_the_first_page_with_its_cards(place, sent):
    for start in STARTS:
        place.demo.add(made_runs.interrupted(place.store, start.run).run_id)
    assert len(opened().get("page_link")) >= len(STARTS)
    assert len(parts(sent)) > len(STARTS)
    assert [wrong for part in parts(sent) for wrong in out_of_place(sent, part)] == []


def test_all_that_is_drawn_apart_has_a_place_of_its_own():
    files = [p for p in (PROJECT / "app").rglob("*.py") if re.search(r"\bst\.fragment\b", p.read_text())]
    assert [p.name for p in files] == ["by_itself.py"]
