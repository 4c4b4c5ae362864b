"""A verdict of two lines: which sentences stand in it, what follows, and that it survives being copied."""

import copy
import pickle

import pytest

from app.words import CUT, MOST, headline, rest_of

LONG = "A sentence that goes on. " * 8


def test_as_many_sentences_as_fit_in_their_order():
    found = headline("First.", LONG.strip(), "The third, which is longer.")
    assert found == f"First. {LONG.strip()}" and rest_of(found) == ("The third, which is longer.",)
    assert headline("First.", LONG * 2, "The third, which is longer.") == "First."
    assert rest_of(headline("First.", LONG * 2, "The third, which is longer.")) == (
        (LONG * 2).strip(),
        "The third, which is longer.",
    )
    assert headline("First.", "", "  ") == "First." and headline() == ""


def test_a_sentence_of_a_name_without_end_is_cut_and_told_whole_below():
    text = f"All of it went into {'x' * 10_000}."
    found = headline(text, "More.")
    assert len(found) == MOST and CUT in found and rest_of(found) == (text, "More.")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_a_copy_says_the_same(again):
    found = headline("First.", LONG * 2)
    assert again(found) == found and again(found).rest == found.rest and again(found).whole == found.whole
