"""Real dumps of two hung jobs from beside the project, with the faults that were injected."""

import ast
import json
import pickle
import re
from pathlib import Path

import pytest

from analyzers.ranks.blocked import analyze
from analyzers.ranks.blocked.causes import NOT_ENTERED, SHOWN
from app.questions.hangs import words
from collectors.ingest import ingest
from collectors.reading import plain_pickle
from runs.store import Store

SHARED = Path(__file__).parents[2].parent / "shared"
DATA = SHARED / "data" / "more" / "nccl_flight_recorder"
ORACLE = SHARED / "oracles" / "more" / "nccl_flight_recorder.json"
SETS = sorted(p.name for p in DATA.glob("*") if p.is_dir())

pytestmark = pytest.mark.skipif(not SETS, reason="no dumps of flight recorders beside the project")
each_set = pytest.mark.parametrize("name", SETS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("dumps") / "store")
    return {name: store.get(ingest([DATA / name], store).run_id) for name in SETS}


def injected(name):
    text = (DATA / name / "fault_injection.log").read_text()
    return tuple(ast.literal_eval(re.search(r"Fault ranks: (\[.*\])", text)[1]))


@each_set
def test_the_ranks_with_an_injected_fault_are_named_and_no_other(runs, name):
    result = analyze(runs[name].tables, {}, {})
    assert result.named == injected(name)
    assert {r for c in result.causes for r in c.ranks} == {*injected(name)}  # no other cause is told either
    assert result.dumps == 16 and result.hung
    said = words.verdict(result)
    assert " and ".join(map(str, result.named)) in said.split(".")[0], "the first sentence names them all"
    assert all(f"Rank {rank} " in said.whole for rank in result.named), "and each has its reason"


@each_set
def test_what_the_reference_tool_finds_is_among_it(runs, name):
    """It tells group, operation and missing ranks of each group's first missing collective."""
    result = analyze(runs[name].tables, {}, {})
    for line in (DATA / name / "reference.txt").read_text().splitlines()[1:]:
        group, description, call, _, _, missing = (part.strip() for part in line.split("|"))
        cause = next(c for c in result.causes if c.kind == NOT_ENTERED and c.ranks == (int(missing),))
        assert (cause.group, f"nccl:{cause.call}", cause.sure) == (group, call, SHOWN)
        assert description.startswith(cause.description)


@each_set
def test_rows_are_what_the_dumps_hold(runs, name):
    told = json.loads(ORACLE.read_text())[f"nccl_flight_recorder/{name}"]["ranks"]
    rows = runs[name].tables.arrow("enqueued").to_pandas()
    progress = runs[name].tables.arrow("group_progress").to_pandas()
    for rank, oracle in told.items():
        mine = rows[rows["rank"] == int(rank)]
        assert len(mine) == oracle["entries"] and mine["state"].astype(str).value_counts().to_dict() == oracle["states"]
        assert mine.groupby("group_name", observed=True)["seq"].max().to_dict() == oracle["seq_max_per_pg"]
        assert (progress["rank"] == int(rank)).sum() == oracle["pgs"]
        assert progress.loc[progress["rank"] == int(rank), "last_enqueued"].notna().all()  # each tied to its group


@each_set
def test_the_reader_gives_what_python_s_own_gives(name):
    for path in sorted((DATA / name).glob("_dump_*")):
        assert plain_pickle.loads(path.read_bytes()) == pickle.loads(path.read_bytes())


@each_set
@pytest.mark.parametrize("without", [0, 5, 10, 12, 14, 15])
def test_without_one_dump_no_healthy_rank_is_named(tmp_path, name, without):
    folder = tmp_path / name
    folder.mkdir()
    for path in (DATA / name).glob("_dump_*"):
        if path.name != f"_dump_{without}":
            (folder / path.name).write_bytes(path.read_bytes())
    store = Store(tmp_path / "store")
    result = analyze(store.get(ingest([folder], store).run_id).tables, {}, {})
    assert {*result.named} <= {*injected(name)} - {without}
    assert result.ranks.set_index("rank").loc[without, "role"] == "silent"
    assert f"rank {without}: no dump of it is there." in result.notes
