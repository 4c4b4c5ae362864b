"""A verdict takes two lines, whatever is named in it; what has no room follows, and nothing is lost.

That it holds of every bundled run and of small files of every format is seen where all questions are asked of those
(`tests/app/asking.py`).
"""

import pytest

from app.pages.cost_planner.form import EXAMPLE as COST
from app.pages.serving_planner.form import EXAMPLE as SERVING
from app.pages.storage.form import EXAMPLE as STORAGE
from app.pages.training_planner.form import EXAMPLE as TRAINING
from app.questions import QUESTIONS
from app.questions.asking import ask
from app.whatif import WHATIFS
from app.whatif.base import named
from app.words import MOST, NAME, Verdict, headline, rest_of, short
from collectors.ingest import ingest
from errors import ChipledgerError
from runs.run import Run
from runs.schema import SCHEMAS
from runs.store import Store
from tests.app.headlines import amiss, faults
from tests.app.small_files import small_files, written

LONG = 10_000  # characters
NAMED = {  # columns in which an input names something of its own
    *("op", "host", "module", "scope", "source", "line", "call", "group_name", "description", "function"),
    *("error", "tenant", "stage", "text", "detail", "communicator", "communicator_name", "frame"),
}
FORMATS = ("kineto", "xplane", "compiled", "flight_recorder", "memory_snapshot", "vllm_bench", "job_log")
LLAMA = {"model": "llama3.1-8b"}
ASKED = {
    "checkpoint": {"save_s": "60", "mttf_s": "10800", "restart_s": "300"},
    "cost": COST,
    "training": TRAINING,
    "storage": STORAGE | {"usd_per_chip_hour": "2.5"},
    "goodput": {"chips": "16384", "mttf_chip_h": "45000", "save_s": "30", "restart_s": "600", "spares": "4"},
    "serving": LLAMA | {"chip": "v5e", "chips": "4", "input": "1000", "output": "200", "concurrency": "16"},
    "serving-plan": SERVING,
    "speculation": LLAMA | {"chip": "v5e", "acceptance": "0.7", "draft": "4"},
    "placement": LLAMA | {"topology": "v5p:4x4x8:slices=2", "mesh": "data=2,fsdp=32,tensor=4"},
    "collective": {"topology": "v5p:4x4x8", "kind": "all_reduce", "bytes": "1GB"},
    "case": {"name": "p99"},
}
FILLS = {"kineto": ("x", "at::native kernel<4, (λ)> ")}  # without and with places where a line may break


def with_long_names(run: Run, store: Store, fill: str) -> Run:
    """The same run with names of 10,000 characters, each still of its own."""
    with store.writer() as writer:
        for table in run.manifest.tables:
            columns = run.tables.arrow(table).to_pydict()
            for column in NAMED & columns.keys():
                for at, value in enumerate(columns[column]):
                    if isinstance(value, str) and value:
                        columns[column][at] = fill * (LONG // len(fill)) + value
            writer.rows(table, SCHEMAS[table].batch(columns))
        return writer.commit(
            run_id=run.run_id[::-1],
            name="n" * LONG,
            kind=run.manifest.kind,
            facts=run.manifest.facts,
            sources=run.manifest.sources,
        )


@pytest.mark.parametrize("name", FORMATS)
def test_names_without_end_do_not_make_a_verdict_longer(place, tmp_path, name):
    file, content = max(small_files()[name], key=lambda f: len(f[1]))
    run = place.store.get(ingest([written(tmp_path / "in", file, content)], place.store).run_id)
    told = 0
    for fill in FILLS.get(name, ("x",)):
        long = with_long_names(run, Store(tmp_path / f"long-{len(fill)}"), fill)
        for question in QUESTIONS:
            try:
                verdict = question.verdict(ask(question, long, {}, place.registry))
            except ChipledgerError:
                continue
            told += 1
            assert len(verdict) <= MOST and len(" ".join(rest_of(verdict))) < 10 * MOST, question.name
            assert isinstance(verdict, Verdict) and verdict.endswith("."), question.name
    assert told


@pytest.mark.parametrize("name", ASKED)
def test_what_ifs_speak_in_two_lines(place, name):
    whatif = named(WHATIFS, name)
    verdict = whatif.words(whatif.answer(whatif.from_query(ASKED[name]), place)).verdict
    assert verdict and faults(verdict) == []


def test_sentences_fit_or_follow():
    first, second, third = "A " + "b" * 150 + ".", "C " + "d" * 70 + ".", "E."
    said = headline(first, "", second, third)
    assert said == first
    assert said.whole == f"{first} {second} {third}" and said.rest == (second, third)
    assert headline("A.", "B.") == "A. B." and headline("A.", "B.").rest == () and headline("", "") == ""
    exact = "x" * (MOST - 3)
    assert headline(exact, "B.") == f"{exact} B." and headline(exact + "x", "B.").rest == ("B.",)
    assert rest_of("plain text") == ()


def test_a_sentence_longer_than_both_lines_loses_its_middle_and_is_told_whole_below():
    text = "The name " + "y" * 1000 + " is long."
    said = headline(text, "Next.")
    assert len(said) == MOST and said.startswith("The name y") and said.endswith("y is long.")
    assert said.rest == (text, "Next.")


def test_a_name_is_cut_in_its_middle():
    assert short("fusion.12") == "fusion.12" and short("z" * NAME) == "z" * NAME
    cut = short("first-" + "z" * 100 + "-last")
    assert len(cut) == NAME and cut.startswith("first-") and cut.endswith("-last") and "…" in cut


@pytest.mark.parametrize(
    "text",
    [
        "it is small.",
        "No full stop",
        "None is None.",
        "It took nan s.",
        "It took inf s.",
        "It took 1.00e-09 s.",
        "It lost -0.00 s.",
        "Its tokens_per_s fell.",
        "It took 683129 steps.",
        "It took  two.",
        "It took 3 s ..",
    ],
)
def test_what_is_no_sentence_is_seen(text):
    assert amiss(text) and faults(text)


def test_sentences_are_let_through():
    for text in (
        "None of 3,000 steps ended.",
        "3 hosts fail.",
        "fusion.3 takes 5 %.",
        "< 0.1 % of it is idle, at 10⁻⁹.",
    ):
        assert amiss(text) == []
