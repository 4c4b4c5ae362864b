"""The programs of bundled runs: one story with the pages Memory and Operations, and one model on two chips."""

import json
import shutil

import pyarrow as pa
import pytest

from app.cli import main
from app.comparing.figures import figures_of
from app.programs import StoredPrograms
from app.questions.asking import answer_dict, ask
from app.questions.heap import HEAP
from app.questions.hlo import HLO
from app.questions.hlo import page as hlo_page
from app.questions.hlo_diff import HLO_DIFF
from app.questions.hlo_graph import HLO_GRAPH
from app.questions.hlo_graph.figure import graph
from app.questions.memory import MEMORY
from app.workspace import workspace
from collectors.ingest import ingest
from errors import InputError, QuestionError
from runs.run import Run
from tests import hlo_programs as made
from tests.app.forms import misfits
from tests.app.serving import get, serving
from tests.bundled import RUNS, bundled

PROGRAMS = (HLO, HLO_GRAPH, HLO_DIFF, HEAP)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return bundled(tmp_path_factory, "training")


@pytest.fixture(scope="module")
def v5p(tmp_path_factory: pytest.TempPathFactory) -> Run:
    bundled(tmp_path_factory, "compiled-llama3.1-8b-v6e")
    return bundled(tmp_path_factory, "compiled-llama3.1-8b-v5p")


def test_one_model_on_two_chips_is_matched_but_for_a_twentieth(v5p, place, tmp_path_factory):
    v6e = bundled(tmp_path_factory, "compiled-llama3.1-8b-v6e")
    store = place.store.root
    for run in (v5p, v6e):  # one store holds both
        shutil.copytree(run.folder, store / "runs" / run.run_id)
    run = place.store.find(v5p.run_id)
    result = ask(HLO_DIFF, run, {"other_run": v6e.run_id}, place.registry)
    assert all(share >= 0.95 for share in result.matched.values())
    assert result.totals["flops_a"] == ask(HLO, run, {}, place.registry).programs["flops"].iat[0]
    assert result.totals["bytes_b"] == ask(HLO, v6e, {}, place.registry).programs["bytes"].iat[0]
    assert misfits(HLO_DIFF, json.loads(json.dumps(answer_dict(run, result), allow_nan=False))) == []
    assert "The second moves 574 GB" in HLO_DIFF.verdict(result) or "the second moves 574 GB" in HLO_DIFF.verdict(
        result
    )
    same = ask(HLO_DIFF, run, {"other_run": run.run_id}, place.registry)
    assert same.to_dict()["same"] and "are the same program" in HLO_DIFF.verdict(same)
    with pytest.raises(QuestionError, match="no run"):
        ask(HLO_DIFF, run, {"other_run": "nowhere"}, place.registry)


def test_the_heap_at_its_peak_is_the_peak_of_the_page_memory(training, place):
    heap, memory = (ask(q, training, {}, place.registry) for q in (HEAP, MEMORY))
    assert heap.program == memory.program == "jit_train_step"
    assert heap.peak_bytes == memory.parts_bytes == heap.always_bytes + heap.live_bytes + heap.room_bytes
    alive = heap.buffers[heap.buffers["at_peak"]]
    assert alive["bytes"].sum() + heap.room_bytes == heap.peak_bytes
    assert heap.curve[heap.peak_event] == heap.curve.max() == heap.peak_bytes - heap.room_bytes
    assert heap.by_op["at_peak_bytes"].sum() == heap.live_bytes


def test_times_are_those_of_the_operations(training, place):
    listed = ask(HLO, training, {}, place.registry).programs.set_index("program")
    result = ask(HLO_GRAPH, training, {"levels": 1}, place.registry)
    ops = training.tables.arrow("ops", ["op", "module", "device", "self_ns", "role"]).to_pandas()
    ops = ops[ops["device"].notna() & (ops["role"] == "compute") & (ops["module"] == "jit_train_step")]
    assert listed.loc["jit_train_step", "seconds"] == pytest.approx(ops["self_ns"].sum() / 1e9)
    mine = ops[ops["op"] == result.op]["self_ns"].sum() / 1e9
    assert (
        result.nodes["seconds"].iat[0] == pytest.approx(mine)
        and mine == ops.groupby("op", observed=True)["self_ns"].sum().max() / 1e9
    )


@pytest.mark.parametrize("question", PROGRAMS, ids=lambda q: q.name)
def test_answers_about_a_profile_have_their_form_and_words(training, place, question):
    options = {"other": "jit_slice"} if question is HLO_DIFF else {}
    result = ask(question, training, options, place.registry)
    text = json.dumps(answer_dict(training, result), allow_nan=False)
    assert misfits(question, json.loads(text)) == [] and len(text) < 1 << 20
    table = question.table(result)
    assert question.verdict(result).endswith(".") and all(len(r) == len(table.head) for r in table.rows)


HOSTILE = "</script><img src=x onerror=alert(1)>"


def test_hostile_names_are_shown_as_they_are(place, tmp_path):
    plan = [{"opcode": "parameter"}, {"opcode": "negate", "operands": [0], "op_name": HOSTILE}]
    data = made.module(plan).replace(b"negate.", b"<b>xss.")
    (tmp_path / "step.hlo.pb").write_bytes(data)
    run = place.store.find(ingest([tmp_path / "step.hlo.pb"], place.store).run_id)
    result = ask(HLO_GRAPH, run, {"op": next(n for n in _names(run) if "xss" in n)}, place.registry)
    assert result.op.startswith("<b>xss")
    figure = graph(result)
    figure.update_traces(customdata=None)  # is handed back by a click, and shown nowhere
    drawn = figure.to_json().replace("\\u003c", "<").replace("\\u003e", ">")
    assert "<b>xss" not in drawn and "<img" not in drawn and "&lt;b&gt;xss" in drawn
    assert HOSTILE in "\n".join(ask(HLO, run, {}, place.registry).lines)


def _names(run: Run) -> list[str]:
    file = run.tables.arrow("modules", ["file"])["file"][0].as_py()
    return StoredPrograms(run).of(file).tables["instructions"]["name"].to_pylist()


KERNEL = """HloModule jit_kernel, is_scheduled=true

ENTRY %main (x: f32[64,64]) -> f32[64,64] {
  %x = f32[64,64]{1,0} parameter(0)
  EXTRA
  ROOT %kernel.1 = f32[64,64]{1,0} custom-call(%LAST), custom_call_target="tpu_custom_call"ESTIMATE
}
"""
ESTIMATE = ', backend_config={"custom_call_config":{"cost_estimate":{"flops":"1000000","bytes_accessed":"32768"}}}'
ADD = "%add.1 = f32[64,64]{1,0} add(%x, %x)"


@pytest.mark.parametrize(
    "extra, last, estimate, flops",
    [
        ("", "x", "", None),
        (ADD, "add.1", "", 64 * 64),
        ("", "x", ESTIMATE, 1e6),
        (ADD.replace("add", "copy"), "x", "", None),
    ],
)
def test_flops_of_kernels_that_nobody_tells_are_not_none(place, tmp_path, extra, last, estimate, flops):
    extra = extra.replace("copy(%x, %x)", "copy(%x)")
    text = KERNEL.replace("EXTRA", extra).replace("LAST", last).replace("ESTIMATE", estimate)
    (tmp_path / "step.txt").write_text(text)
    run = place.store.find(ingest([tmp_path / "step.txt"], place.store).run_id)
    result = ask(HLO, run, {}, place.registry)
    assert result.to_dict()["programs"][0]["flops"] == flops
    assert ("in one execution" in HLO.verdict(result)) == (flops is not None)
    assert ("at least" in HLO.verdict(result)) == (flops is not None and not estimate)
    (shown,) = (f.value for f in hlo_page.figures(result) if f.label == "FLOPs")
    assert shown.startswith("at least ") == (flops is not None and not estimate), "as the verdict has it"
    figures = figures_of(run, None, 0, lambda *_: None)
    assert figures.get("program_flops") == (flops if estimate else None) and figures["program_bytes"] > 0
    said = [n for n in result.notes if n.startswith("Of 1 custom call nobody tells the FLOPs")]
    assert len(said) == (not estimate)
    of_kernel = 1e6 if estimate else None
    (hit,) = ask(HLO, run, {"q": "kernel custom-call"}, place.registry).to_dict()["search"]["found"]
    nodes = ask(HLO_GRAPH, run, {"op": "kernel.1"}, place.registry).to_dict()["nodes"]
    assert hit["flops"] == next(n["flops"] for n in nodes if n["op"] == "kernel.1") == of_kernel


def test_a_program_whose_file_is_damaged_is_one_sentence(place, tmp_path):
    (tmp_path / "step.hlo.pb").write_bytes(
        made.module([{"opcode": "parameter"}, {"opcode": "negate", "operands": [0]}])
    )
    run = place.store.find(ingest([tmp_path / "step.hlo.pb"], place.store).run_id)
    file = run.tables.arrow("modules", ["file"])["file"][0].as_py()
    path = run.folder / "blobs" / file
    kept = path.read_bytes()
    for damage in (
        kept[: len(kept) // 2],
        b"",
        b"no zstd at all",
        pa.Codec("zstd").compress(b"\xff" * 99, asbytes=True),
    ):
        path.chmod(0o600)
        path.write_bytes(damage)
        with pytest.raises(InputError) as e:
            ask(HLO, place.store.find(run.run_id), {}, place.registry)
        assert "\n" not in str(e.value)


def test_the_command_and_the_api_give_the_same(place, tmp_path, capsys):
    store = tmp_path / "own"
    assert main(["--store", str(store), "ingest", str(RUNS / "compiled-llama3.1-8b-v5p")]) == 0
    run = workspace(str(store)).store.runs()[0].run_id
    capsys.readouterr()
    assert main(["--store", str(store), "show", run, "hlo", "--option", "q=all-gather", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["search"]["hits"] > 0 and told["text"]["lines"] > 4000 and len(told["text"]["shown"]) <= 120
    assert main(["--store", str(store), "show", run, "heap"]) == 2
    assert "buffer assignment" in capsys.readouterr().err
    with serving(store) as server:
        assert get(f"{server}/api/runs/{run}/show/hlo?q=all-gather")[1] == told
        status, graphed = get(f"{server}/api/runs/{run}/show/hlo_graph?levels=1&nodes=5")
        assert status == 200 and len(graphed["nodes"]) <= 5
        assert get(f"{server}/api/runs/{run}/show/hlo_graph?nodes=100000")[0] == 400
