"""The padding page: of a model alone, of a run with programs, of one that names a model, of one that tells nothing."""

import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from analyzers.flops import padding
from app.cli import main
from app.questions.asking import ModelSubject, ask
from app.questions.padding import PADDING
from app.questions.padding.figure import bands, gains, heat, shares
from app.questions.padding.words import table, verdict
from errors.options import parse_options
from runs.tables import MemoryTables
from tests.app import made_runs
from tests.app.test_pages import ODD, opened, words

PAGE = "questions/padding/page.py"


def result(name: str = "gpt-oss-20b", **options):
    facts = ModelSubject(name, name).facts
    return padding.analyze(MemoryTables({}), facts, parse_options(padding.OPTIONS, options))


def figures(at: AppTest) -> dict[str, str]:
    return {m.label.rpartition(" ")[0]: m.value for m in at.metric}


@pytest.fixture
def programs(place):
    """A run on TPU v5p whose one program ran ten times: heads of 64, and a width that fills the unit."""
    tables = {
        "modules": {"capture": [0], "program": [5], "name": ["jit_step"], "flops": [1e9]},
        "ops": {
            "capture": [0],
            "op_id": [0],
            "host": ["h"],
            "device": [0],
            "role": ["module"],
            "program": [5],
            "count": [10],
            "category": ["other"],
            "total_ns": [1e9],
        },
        "matmuls": {
            "capture": [0] * 2,
            "program": [5] * 2,
            "op": ["dot.1", ODD],
            "m": [512, 512],
            "k": [64, 512],
            "n": [512, 1024],
            "batch": [8, 1],
            "count": [2, 1],
            "dtype": ["bf16"] * 2,
            "source": [None, ODD],
        },
    }
    facts = {"chip": "TPU v5p", "chips": 1, "model": "llama3.1-70b", "max_target_length": 4096}
    return made_runs.write(place.store, "traced", tables, facts)


def test_it_stands_without_any_run(place):
    at = opened(PAGE)
    assert not at.exception and not at.warning
    assert "matmul FLOPs of llama3.1-8b at 8,192 tokens" in words(at)
    assert figures(at)["Padding tax"] == "6.26 to 12.5 %"


def test_the_address_alone_says_what_is_asked(place):
    at = opened(PAGE, model="Llama 3 70B", mxu="128", seq="2048", tp="8", head_dim="64")
    assert not at.exception and not at.warning
    same = result("llama3.1-70b", mxu="128", seq=2048, tp=8, head_dim=64)
    assert verdict(same) in words(at)
    assert at.selectbox(key="pick_head_dim").value == "64"
    assert not opened(PAGE, model="llama3.1-8b", mxu="7", seq="x", tp="3", head_dim="-1", d_ff="none").exception


def test_a_choice_moves_the_tax_and_the_address_and_reset_takes_it_back(place):
    at = opened(PAGE, model="llama3.1-8b")
    at.selectbox(key="pick_head_dim").set_value("256").run()
    assert not at.exception
    assert at.query_params["head_dim"] == ["256"] or at.query_params["head_dim"] == "256"
    assert figures(at)["Padding tax"] == "0 %" and "Hardly any padding" in words(at)
    at.number_input(key="pick_d_ff").set_value(14400).run()
    assert figures(at)["Padding tax"] != "0 %"
    next(b for b in at.button if b.label == "Reset").click().run()
    assert not at.exception and "head_dim" not in at.query_params and "d_ff" not in at.query_params
    assert figures(at)["Padding tax"] == "6.26 to 12.5 %"


def test_another_model_is_chosen_at_the_head(place):
    at = opened(PAGE, model="llama3.1-8b")
    at.selectbox(key="pick_head_dim").set_value("256").run()
    at.button_group(key="pick_mxu").set_value("128").run()
    assert "MXU of 128 x 128" in words(at)
    at.selectbox(key="about").set_value("gpt-oss-120b").run()
    assert not at.exception and dict(at.query_params) in ({"model": "gpt-oss-120b"}, {"model": ["gpt-oss-120b"]})
    assert figures(at)["Padding tax"] == "21.7 to 43.1 %"
    assert (at.selectbox(key="pick_head_dim").value, at.button_group(key="pick_mxu").value) == ("64", "256")


def test_blocks_and_buckets_are_said_in_words(place):
    at = opened(PAGE, model="kimi-k2-1t", group_block="128", buckets="512,1024,8192")
    assert not at.exception and not at.warning
    assert "170.7 tokens of an expert, at the mean, become 256" in words(at)
    assert "Length buckets 512, 1,024, 8,192: 4,096 tokens on average become 7,264" in words(at)
    assert "expected lengths in tokens" in words(opened(PAGE, model="kimi-k2-1t", buckets="many"))


def test_a_model_of_no_catalogue_is_told_kindly(place):
    at = opened(PAGE, model="no such model")
    assert not at.exception
    assert "no model is called" in words(at)


def test_a_run_answers_from_its_programs_or_from_its_model(place, programs):
    at = opened(PAGE, run=programs.run_id)
    assert not at.exception and not at.warning
    assert "matmul FLOPs of the programs that ran" in words(at) and "an MXU of 128 x 128" in words(at)
    assert "heads of 64" in words(at)
    assert ODD not in "\n".join(m.value for m in at.markdown)
    at = opened(PAGE, run=programs.run_id, source="model")
    assert "llama3.1-70b at 4,096 tokens" in words(at)
    at = opened(PAGE, run=programs.run_id, model="llama3.1-8b", mxu="256")
    assert "llama3.1-8b at 4,096 tokens" in words(at) and "256 x 256" in words(at)


def test_a_run_that_tells_nothing_says_what_would_help(place):
    tables = {"steps": {"step": [0, 1], "start_ns": [0, 10**9], "dur_ns": [10**9] * 2, "source": ["x"] * 2}}
    run = made_runs.write(place.store, "bare", tables, {"chips": 2})
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning
    assert "neither a program with matrix products nor a model is known" in words(at)


def test_the_command_line_prints_and_gives_the_contract(place, capsys):
    asked = ["show", "model:llama3.1-8b", "padding", "--option", "seq=8192", "--option", "mxu=256"]
    assert main(asked) == 0
    text = capsys.readouterr().out
    assert text.startswith("On an MXU of 256 x 256, padding adds 6.26 to 12.5 %") and "128,256" in text
    assert main([*asked, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["model"] == "llama3.1-8b" and round(answer["tax"], 5) == 0.12517


def test_areas_of_the_picture_are_flops():
    found = result(mxu="256", tp=8)
    useful, maybe, lost = shares(found).data[:3]
    whole = float(found.rows["padded_flops"].sum())
    assert np.sum(useful.width) == pytest.approx(100)
    assert np.sum(useful.width * useful.y) / 1e4 == pytest.approx(float(found.rows["useful_flops"].sum()) / whole)
    assert np.allclose(np.asarray(useful.y) + maybe.y + lost.y, 100)
    assert np.allclose(np.asarray(maybe.base), useful.y)
    assert np.allclose(np.asarray(lost.base), 100 - np.asarray(lost.y))


@pytest.mark.parametrize("name", ["gpt-oss-20b", "kimi-k2-1t", "gemma3-12b"])
@pytest.mark.parametrize("options", [{}, {"chip": "H100 SXM"}, {"tp": 8, "mxu": "128"}])
def test_figures_and_words_stand_for_every_kind(name, options):
    found = result(name, **options)
    rows = len(found.rows)
    assert len(heat(found).data[0].z) == rows == len(table(found).rows)
    assert (gains(found) is None) == (not found.advice)
    assert len(bands([("a", found.tax_optimistic, found.tax)]).data[0].x) == 1
    assert verdict(found).endswith(".")


def test_questions_meet_here_too(place, programs):
    assert ask(PADDING, programs, {}, place.registry).source == "program"
