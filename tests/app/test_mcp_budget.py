"""Answers cut to a budget: never over it, never untrue, and all of them can be had part by part."""

import json
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.mcp.base import Told
from app.mcp.budget import fit, part, rest, size, text
from app.mcp.calling import cut
from errors import QuestionError

LEAST = 500 * 4
WORDS = st.text(max_size=30) | st.sampled_from(["a/b", "~", "~1", "", "0", "naïve €", '"\n'])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(WORDS, inner, max_size=40),
    max_leaves=300,
)


def kept(shown, whole, at: str, notes: dict[str, dict]) -> None:
    """Whether what is shown is the whole, but for what the notes on it tell."""
    note = notes.get(at)
    if note is None and not isinstance(whole, dict | list):
        assert shown == whole
        return
    if note is None or "shown_characters" not in note:
        if isinstance(whole, list):
            assert len(shown) == (note["shown"] if note else len(whole)) and (not note or note["of"] == len(whole))
            pairs = [(str(i), s, w) for i, (s, w) in enumerate(zip(shown, whole, strict=False))]
        else:
            assert list(shown) == list(whole)[: len(shown)]
            assert len(shown) == (note["shown"] if note else len(whole)) and (not note or note["of"] == len(whole))
            pairs = [(k.replace("~", "~0").replace("/", "~1"), shown[k], whole[k]) for k in shown]
        for name, s, w in pairs:
            kept(s, w, f"{at}/{name}", notes)
    else:
        assert isinstance(whole, str) and shown[-1] == "…" and whole.startswith(shown[:-1])
        assert (note["shown_characters"], note["of"]) == (len(shown) - 1, len(whole))


@given(VALUES)
def test_the_size_is_that_of_the_json(value):
    more = size(value, 10**9) - len(text(value).encode())
    assert 0 <= more <= text(value).count("[") + text(value).count("{"), "at most a comma too many for each"


@given(VALUES, st.integers(100, 3000))
def test_what_is_shown_is_true_and_no_longer_than_allowed(value, most):
    shown, notes = fit(value, most)
    assert len(text(shown).encode()) <= most
    assert bool(notes) == (size(value, most) > most)
    assert len({n["part"] for n in notes}) == len(notes)
    kept(shown, value, "", {n["part"]: n for n in notes})


@pytest.mark.parametrize("empty", range(30))
def test_a_list_whose_cut_needs_another_note_each_time_still_shows_something(empty):
    value = {"rows": [{"n": i, "held": e} for i, e in enumerate([""] * empty + ["ab\n" * 899, "ab\n" * 34])]}
    for start in range(empty + 2):
        made = cut(Told("", value), "/rows", start, 4001)
        assert json.loads(made)["answer"] and len(made.encode()) <= 4001


@given(st.lists(st.integers(0, 5000).map("ab\n".__mul__) | WORDS, min_size=1, max_size=30), st.integers(LEAST, 9000))
def test_all_of_a_list_can_be_had_page_by_page(entries, most):
    value = {"rows": [{"n": i, "held": e} for i, e in enumerate(entries)]}
    start, found = 0, []
    while start < len(entries):
        told = json.loads(cut(Told("", value), "/rows", start, most))
        assert told["answer"], "a page shows something"
        whole = [n for n in told.get("left_out", []) if n.get("part", "").startswith(f"/rows/{start}")]
        found += [row["n"] for row in told["answer"]]
        assert whole or told["answer"] == value["rows"][start : start + len(told["answer"])]
        start += len(told["answer"])
    assert found == list(range(len(entries)))


@settings(max_examples=50, deadline=None)
@given(VALUES, st.integers(LEAST, 2 * LEAST), st.text(max_size=3000))
def test_an_answer_with_its_sentence_links_and_notes_keeps_the_budget(value, most, says):
    links = {"page": "/findings?run=1", "json": "/api/runs/1/show/findings"}
    made = cut(Told(says, value, links), "", 0, most)
    assert len(made.encode()) <= most
    told = json.loads(made)
    assert told["links"] == links and set(told) <= {"says", "answer", "links", "left_out", "how"}
    assert ("left_out" in told) == ("how" in told)
    if "left_out" not in told:
        assert told["answer"] == json.loads(text(value))


def test_small_parts_stay_whole_beside_a_large_one():
    value = {"cause": "slow_rank", "rows": [{"step": i, "s": i / 3} for i in range(10_000)], "gain": 0.5}
    shown, (note,) = fit(value, 1000)
    assert (shown["cause"], shown["gain"]) == ("slow_rank", 0.5)
    assert shown["rows"] == value["rows"][: note["shown"]] and note["of"] == 10_000
    assert len(text(shown)) > 900, "what the small ones do not need goes to the large one"


def test_an_object_of_very_many_is_cut_like_a_list():
    value = {str(step): step / 7 for step in range(700_000)}
    shown, (note,) = fit(value, 2000, "/step_s")
    assert list(shown) == list(value)[: len(shown)] and len(shown) > 50
    assert note == {"part": "/step_s", "from": 0, "shown": len(shown), "of": 700_000}


@pytest.fixture(scope="module")
def fifty_megabytes() -> dict:
    """What a job of 16,384 ranks may be told of: each rank with a hundred numbers."""
    draw = random.Random(5)
    waits = [draw.random() for _ in range(160)]
    ranks = [{"rank": rank, "host": f"vm/{rank // 8}", "waits_s": waits} for rank in range(16_384)]
    value = {"verdict": "persistent", "ranks": ranks, "notes": []}
    assert len(text(value)) > 50e6
    return value


@pytest.mark.parametrize("most", [LEAST, 12_000, 200_000])
def test_fifty_megabytes_are_cut_without_being_written_first(fifty_megabytes, most):
    tracemalloc.start()
    written = cut(Told("One rank is late.", fifty_megabytes), "", 0, most)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 2_000_000 + 20 * most, "fifty megabytes were never held as text"
    told = json.loads(written)
    assert told["answer"]["verdict"] == "persistent" and told["answer"]["ranks"][0]["rank"] == 0
    (note,) = [n for n in told["left_out"] if n["part"] == "/ranks"]
    assert note["of"] == 16_384 and note["shown"] == len(told["answer"]["ranks"])


@pytest.mark.parametrize("rank", [1, 5_000, 16_383])
def test_any_rank_of_them_is_found_by_its_number(fifty_megabytes, rank):
    told = json.loads(cut(Told("", fifty_megabytes), "/ranks", rank, 12_000))
    assert told["answer"][0] == fifty_megabytes["ranks"][rank] and told["start"] == rank
    assert json.loads(cut(Told("", fifty_megabytes), f"/ranks/{rank}/host", 0, LEAST))["answer"] == f"vm/{rank // 8}"


@pytest.mark.parametrize("pointer", ["x", "/x", "/a/3", "/a/-1", "/a/²", "/a/0/x", "/b/c/0", "//", "/a/" + "9" * 5000])
def test_a_part_that_is_not_there_is_refused_with_those_that_are(pointer):
    with pytest.raises(QuestionError) as error:
        part({"a": [1, 2, 3], "b": {"c": []}, "": 0}, pointer)
    assert len(str(error.value)) < 400 and error.value.expected


@pytest.mark.parametrize(("value", "start"), [([1, 2], 2), ([], 1), ({"a": 1}, 1), ("text", 1), (None, 3)])
def test_there_is_no_entry_after_the_last(value, start):
    with pytest.raises(QuestionError, match="entries"):
        rest(value, start)
