"""A server's log that tells of its start alone, or of its failing, is spoken of as a server and not as a job."""

import pytest

from analyzers.lost import checkpoints, goodput, interruptions
from analyzers.serving import engine
from analyzers.time import ledger, steps
from errors import QuestionError
from runs.tables import MemoryTables
from tests.analyzers.load_tests import ask

FACTS = {"engine": "vllm", "engine_version": "0.22.1"}
FAILED = {
    "evidence": {
        "text": ["ERROR torch.OutOfMemoryError: CUDA out of memory."],
        "cause": ["out_of_memory"],
        "severity": ["error"],
        "order": [0],
        "source": ["serve.log"],
    }
}
QUESTIONS = (ledger, engine, interruptions, checkpoints, goodput, steps)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.__name__.rpartition(".")[2])
@pytest.mark.parametrize("failed", [True, False], ids=["failed", "started"])
def test_words_are_of_serving(question, failed):
    with pytest.raises(QuestionError) as e:
        ask(question, MemoryTables(FAILED if failed else {}), FACTS)
    text = str(e.value)
    assert text.startswith("this run is of a server (vllm 0.22.1)") and "/metrics" in text
    assert ("the log says (once): ERROR torch.OutOfMemoryError" in text) is failed
    assert "training log" not in text and "goodput entries" not in text


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.__name__.rpartition(".")[2])
def test_of_nothing_that_is_known_to_be_a_server_nothing_changes(question):
    with pytest.raises(QuestionError) as e:
        ask(question, MemoryTables({}))
    assert "of a server" not in str(e.value)
