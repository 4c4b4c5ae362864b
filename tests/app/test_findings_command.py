"""`chipledger findings`: what it prints, and the gates that scripts end by."""

import json
from dataclasses import replace

import pytest

from app.cli import main
from app.cli.commands.findings import read_gate
from app.questions.asking import ask
from app.questions.findings import FINDINGS, words
from app.questions.findings.page import figures
from app.workspace import workspace
from errors import QuestionError
from tests.app import ledgers
from tests.bundled import RUNS
from tests.collectors.kineto_traces import kernel, trace


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    assert main(["--store", str(folder), "ingest", str(RUNS / "training"), "--name", "job"]) == 0
    return str(folder)


def test_it_says_what_is_wrong_what_it_is_worth_and_what_to_do(store, capsys):
    assert main(["--store", store, "findings", "job"]) == 0
    said = capsys.readouterr().out
    assert "gives back" in said and "Rank 1" in said and "show RUN stragglers" in said


@pytest.mark.parametrize(
    ("gates", "code"),
    [
        (["gain>5%"], 3),
        (["gain>90%"], 0),
        (["joint>0.5", "told<10%"], 3),
        (["kept<10%", "useful<1%"], 0),
    ],
)
def test_gates_end_by_their_exit_code(store, capsys, gates, code):
    args = [part for gate in gates for part in ("--fail-if", gate)]
    assert main(["--store", store, "findings", "job", "--json", *args]) == code
    said = json.loads(capsys.readouterr().out)
    assert [g["gate"] for g in said["gates"]] == gates
    assert any(g["failed"] for g in said["gates"]) == (code == 3)


@pytest.mark.parametrize("text", ["", "gain", "gain>", "gain=5%", "loss>5%", "gain>500%", "gain>5%; rm", "gain>٥%"])
def test_a_gate_that_is_none_is_refused(text, store, capsys):
    with pytest.raises(QuestionError, match="gate|share"):
        read_gate(text)
    assert main(["--store", store, "findings", "job", "--fail-if", text]) == 2
    assert "error:" in capsys.readouterr().err


def test_a_gate_that_cannot_be_told_ends_with_four(store, tmp_path, capsys):
    steps = tmp_path / "steps"
    steps.mkdir()
    (steps / "job.log").write_text(
        "".join(f"completed step: {n}, seconds: 1.0, TFLOP/s/device: 1.0, loss: 3.0\n" for n in range(40))
    )
    assert main(["--store", store, "ingest", str(steps), "--name", "lines"]) == 0
    capsys.readouterr()
    assert main(["--store", store, "findings", "lines", "--fail-if", "gain>5%"]) == 4
    assert "cannot be told" in capsys.readouterr().out


def test_a_gain_that_passes_is_not_told_where_more_may_be_lost_that_nobody_can_judge(store):
    result = ask(FINDINGS, workspace(store).store.find("job"), {}, workspace(store).registry)
    share = max(f.likely for f in result.findings) / result.whole
    (over, passes), (_, fails) = (read_gate(f"gain>{100 * (share + d):.3f}%") for d in (0.01, -0.01))
    assert (over, passes(result), fails(result)) == (over, False, True)
    blind = replace(result, told_share=0.4)
    assert (passes(blind), fails(blind)) == (None, True)


def test_a_finding_of_which_nobody_knows_what_it_costs_passes_no_gate_beside_others(store):
    known = ask(FINDINGS, workspace(store).store.find("job"), {}, workspace(store).registry)
    unknown = replace(
        known, findings=(*known.findings, replace(known.findings[0], gain=None)), joint=(*known.joint, known.joint[-1])
    )
    more = replace(known, beyond=1)
    largest, all_ = max(f.likely for f in known.findings) / known.whole, known.joint[-1] / known.whole
    for name, share, told in (("gain", largest, (False, None, False)), ("joint", all_, (False, None, None))):
        passes, fails = (read_gate(f"{name}>{100 * (share + d):.3f}%")[1] for d in (0.01, -0.01))
        assert tuple(map(passes, (known, unknown, more))) == told, name
        assert all(map(fails, (known, unknown, more)))


def test_useful_maths_is_at_least_so_much_where_flops_of_computing_are_not_known(store):
    """12 % of the chip time is known to be useful, and up to 40 % besides may be."""
    result = ask(FINDINGS, workspace(store).store.find("job"), {}, workspace(store).registry)
    bound = replace(result, findings=(), ledger=ledgers.uncounted(), useful_share=0.12, told_share=0.6)
    for text, known, least in (
        ("useful<30%", True, None),
        ("useful>30%", False, None),
        ("useful<60%", True, True),
        ("useful<10%", False, False),
        ("useful>10%", True, True),
    ):
        gate = read_gate(text)[1]
        assert (gate(replace(bound, ledger=result.ledger)), gate(bound)) == (known, least), text
    assert "at least 12 % is useful maths" in words.nothing(bound)
    assert bound.to_dict()["grade"]["useful_share_is_at_least"] and not result.useful_least
    shown = {f.label: f.value for f in figures(bound)}
    assert shown["Useful maths"] == "at least 12.0 %"


def test_what_no_input_would_tell_asks_for_none(store, tmp_path, capsys):
    """Of a GPU that a profile shows, nothing tells how its tiles are filled up."""
    (tmp_path / "rank-0.json").write_bytes(trace([kernel("k", 1000 * n, 990, n) for n in range(20)]))
    assert main(["--store", store, "ingest", str(tmp_path / "rank-0.json"), "--name", "profiled"]) == 0
    assert main(["--store", store, "findings", "profiled"]) == 0
    said = capsys.readouterr().out
    assert "Not told (padding): nothing tells how far" in said and "Add ." not in said
