"""The memory page of a recorded history of allocations: its words, its pictures, and that they agree."""

import pytest

from app import theme
from app.cli import main
from app.questions.asking import answer_dict, ask
from app.questions.memory import MEMORY
from app.questions.memory.snapshot_figure import COLOURS, MAX_LINES, PATTERNS, over_time, tiles, treemap
from app.questions.memory.snapshot_view import growth_words, holders
from app.questions.memory.snapshot_words import PHASES, accounts, sentences
from app.workspace import Workspace
from catalog import frames
from collectors.ingest import ingest
from tests.analyzers.test_memory_snapshot import MB, asked, steps, tables_of
from tests.app.forms import misfits
from tests.app.test_pages import opened, words
from tests.collectors.snapshots import block, dumped, event, segment, small, snapshot
from tests.collectors.snapshots import frames as stack_of

PAGE = "questions/memory/page.py"


def stored(store, folder, *told):
    files = []
    for number, data in enumerate(told):
        files.append(folder / f"rank{number}.pickle")
        files[-1].write_bytes(data)
    return store.get(ingest(files, store).run_id)


def test_every_phase_has_words_and_a_colour_and_what_is_not_known_is_hatched():
    assert set(PHASES) == set(frames.PHASES) == set(COLOURS)
    assert set(COLOURS.values()) <= set(theme.COLOURS.values()) and set(PATTERNS) == {"unrecorded"}


@pytest.mark.parametrize("told", [[small()], [dumped(steps(8, 20 * MB))], [dumped(steps(3)), small()]])
def test_the_page_of_a_run(place: Workspace, tmp_path, told):
    run = stored(place.store, tmp_path, *told)
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and not at.warning and not at.error
    result = ask(MEMORY, run, {}, place.registry)
    assert MEMORY.verdict(result) in words(at)
    assert growth_words(result.snapshot) in words(at)
    assert misfits(MEMORY, answer_dict(run, result)) == []


def test_the_page_of_a_snapshot_without_history(place: Workspace, tmp_path):
    run = stored(place.store, tmp_path, dumped(snapshot([segment(512, 4096, [block(512, 1024)])])))
    at = opened(PAGE, run=run.run_id)
    assert not at.exception and "all allocated by calls that nobody recorded" in words(at)
    assert "No history was recorded, so the peak is not known." in words(at)
    assert "Over time" not in words(at) and "What grew" not in words(at)
    told = answer_dict(run, ask(MEMORY, run, {}, place.registry))
    assert misfits(MEMORY, told) == [] and told["peak_bytes"] is None and told["snapshot"]["peak_bytes"] is None


def test_tiles_nest_and_add_up_to_the_peak(tmp_path):
    for told in (small(), steps(8, 20 * MB)):
        history = asked(tables_of(tmp_path, told)).snapshot
        drawn = tiles(history).set_index("id")
        assert drawn.index.is_unique and drawn[drawn["parent"] == ""]["size"].sum() == history.peak_bytes
        for key, row in drawn.iterrows():
            below = drawn[drawn["parent"] == key]["size"]
            assert not len(below) or below.sum() == row["size"]


def many(lines):
    """As many lines, each held by two callers and more."""
    held = [
        block(512 * n, 512, stack=stack_of((f"f{n % lines}", "a.py", n % lines), ("g", "b.py", n // lines)))
        for n in range(lines * 12)
    ]
    return snapshot([segment(512, 1 << 30, held)])


def test_many_lines_and_callers_become_one_tile_each(tmp_path):
    history = asked(tables_of(tmp_path, many(200))).snapshot
    drawn = tiles(history)
    assert len(drawn) < 12 * MAX_LINES and (drawn["label"] == "140 more lines").sum() == 1
    assert (drawn["label"] == "from 4 more").sum() == MAX_LINES
    assert drawn[drawn["parent"] == "elsewhere"]["size"].sum() == history.peak_bytes
    assert treemap(history).data[0].marker.pattern.shape.count("/") == 0


def test_the_picture_over_time_marks_the_peak_the_reserve_and_what_failed(tmp_path):
    told = steps(4)
    told["device_traces"][0].append(event("oom", 1 << 20, 3 * 10**9, 400))
    result = asked(tables_of(tmp_path, told))
    figure = over_time(result, result.snapshot)
    texts = [a.text for a in figure.layout.annotations]
    assert texts == ["reserved at the peak 4.00 GB", "peak 1.05 GB", "3.00 GB refused "]
    assert max(figure.data[0].y) == pytest.approx(result.peak_bytes / 1e9)
    assert figure.layout.yaxis.range[1] > 4.0 and len(figure.layout.shapes) == 2


def test_the_picture_over_time_is_of_one_snapshot(place: Workspace, tmp_path):
    """Two of one process, whose names differ in their ending alone: the fuller one is drawn, and what failed in it."""
    other = steps(3)
    other["device_traces"][0].append(event("oom", 1 << 20, 3 * 10**9, 400))
    for name, told in (("rank0.pickle", steps(8, 20 * MB)), ("rank0.pkl", other)):
        (tmp_path / name).write_bytes(dumped(told))
    run = place.store.get(ingest([tmp_path / "rank0.pickle", tmp_path / "rank0.pkl"], place.store).run_id)
    result, alone = ask(MEMORY, run, {}, place.registry), asked(tables_of(tmp_path, steps(8, 20 * MB)))
    drawn, expected = over_time(result, result.snapshot), over_time(alone, alone.snapshot)
    assert set(result.snapshot.devices["host"]) == {"rank0"} and len(result.snapshot.refused) == 1
    assert list(drawn.data[0].x) == list(expected.data[0].x) and list(drawn.data[0].y) == list(expected.data[0].y)
    assert not any("refused" in a.text for a in drawn.layout.annotations)


def test_accounts_of_what_was_reserved_add_up(tmp_path):
    history = asked(tables_of(tmp_path, small())).snapshot
    rows = accounts(history)
    assert rows["Bytes"].sum() == history.end["reserved"] == 4096 + (1 << 20)
    assert rows["Share"].sum() == pytest.approx(100)
    assert holders(history)["Bytes"].sum() == history.peak_bytes


def test_the_command_line_tells_the_same(place: Workspace, tmp_path, capsys):
    run = stored(place.store, tmp_path, small())
    main(["show", run.run_id, "memory"])
    out = capsys.readouterr().out
    assert sentences(ask(MEMORY, run, {}, place.registry))[0] in out and "MulBackward0 (backward pass)" in out
