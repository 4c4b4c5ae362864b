"""The ledger of serving runs in words and on its page."""

import pytest

from app.questions.ledger import words as said
from tests.analyzers.test_serving_ledger import T0, S, ask, engine
from tests.app import made_runs
from tests.app.test_pages import opened, words

REQUESTS = {
    "id": ["a", "b"],
    "arrival_ns": [T0, T0 + S],
    "first_token_ns": [T0 + S, T0 + 2 * S],
    "last_token_ns": [T0 + 4 * S, T0 + 5 * S],
    "prompt_tokens": [100, 100],
    "output_tokens": [50, 50],
    "status": ["completed", "completed"],
}
KNOWN = {"chips": 2, "model": "llama3.1-8b", "chip": "v6e"}


def test_passes_are_told_as_tokens_of_answers():
    rows, _ = engine()
    result = ask({"iterations": rows, "requests": REQUESTS}, KNOWN)
    text = said.verdict(result)
    assert "went into tokens of answers" in text and "reading prompts" in text
    assert "Scheduling around the passes cost the most" in text  # nothing recorded between pass 40 and the last token
    titles = [row[0].strip() for row in said.table(result).rows]
    assert {"Served tokens", "Prefill", "Decode", "Lost work", "Bucket padding"} <= set(titles)


def test_requests_alone_say_what_is_missing():
    text = said.verdict(ask({"requests": REQUESTS}, KNOWN))
    assert "cannot be told: requests were in the engine, but no record of its passes" in text


@pytest.mark.parametrize("with_passes", [True, False])
def test_the_page(place, with_passes):
    passes = {name: column.tolist() for name, column in engine()[0].items()}
    tables = {"requests": REQUESTS} | ({"iterations": passes} if with_passes else {})
    run = made_runs.write(place.store, "serving", tables, KNOWN, kind="serving")
    at = opened("questions/ledger/page.py", run=run.run_id)
    assert not at.exception
    labels = [m.label[:-2] for m in at.metric]  # without the mark of the basis
    assert "Served tokens" in labels and "Goodput" not in labels
    assert ("Lost work" if with_passes else "Cannot be told") in labels
    assert "steps that were kept" not in words(at)
