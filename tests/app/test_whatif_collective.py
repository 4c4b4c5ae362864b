"""Collectives: the what-if on the command line, its words, its figure, and the panel of the topology lab."""

import json

import numpy as np
import pytest

from app.cli import main
from app.pages.topology.collective_figure import over_size
from app.pages.topology.collectives import rows_of
from app.whatif import WHATIFS
from app.whatif.base import named
from app.whatif.collective import COLLECTIVE
from app.whatif.collective.answers import answered
from app.whatif.collective.asked import Asked, axes_of, size_of
from app.whatif.collective.wording import SIZES, against, verdict
from errors import QuestionError
from tests.app.test_pages import opened, words

GIB = 1 << 30
CONTRACT = {"seconds", "bound", "crossover_bytes", "low_s", "high_s"}


def asked(**query):
    return COLLECTIVE.answer(COLLECTIVE.from_query({k: str(v) for k, v in query.items()}), None)


def test_the_contract_on_the_command_line(capsys):
    assert (
        main(
            [
                "whatif",
                "collective",
                "--topology",
                "v5p:4x4x4",
                "--kind",
                "all_gather",
                "--bytes",
                "1GiB",
                "--link-bytes-per-s",
                "90e9",
                "--hop-s",
                "1e-6",
                "--json",
            ]
        )
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert set(told) >= CONTRACT and told["bound"] == "bandwidth"
    assert told["seconds"] == pytest.approx(1.988410785185185e-3, rel=1e-9)
    assert told["crossover_bytes"] == pytest.approx(3.24e6)
    assert told["critical_tokens_per_chip"] == pytest.approx(459e12 / (3 * 180e9))
    assert told["least_message_bytes"] == pytest.approx(90e9 * 1e-6)
    assert told["pod_oneway_bytes_per_s"] == pytest.approx(64 * 6 * 90e9)
    assert (
        main(
            [
                "whatif",
                "collective",
                "--topology",
                "v5p:4x4x4",
                "--kind",
                "all_gather",
                "--bytes",
                "1 MiB",
                "--axes",
                "x,y",
                "--fail",
                "chip=5",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert out.startswith("All-gather of 1.05 MB over groups of 16 chips along x and y takes ") and "re-created" in out


def test_over_http_it_is_found_and_takes_several_failures():
    assert named(WHATIFS, "collective") is COLLECTIVE
    found = asked(topology="v5p:4x4x4", kind="all_to_all", bytes="1GiB", fail="chip=5;link=12-13")
    assert found.failures == ("chip=5", "link=12-13") and found.result.chips == 63
    assert found.truth and found.to_dict()["notes"][0] == found.truth[0]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["failures"] == ["chip=5", "link=12-13"]


def test_sizes_and_axes_are_read():
    assert [size_of(t) for t in ("1GiB", "64 kB", "1e9", "512MiB", "1.5gb", "4096b")] == [
        GIB,
        64e3,
        1e9,
        512 << 20,
        1.5e9,
        4096,
    ]
    assert axes_of(" X, y") == ("x", "y") and axes_of(None) == ()
    for wrong in ("", "1XB", "-1", "GiB", "1e", "nan"):
        with pytest.raises(QuestionError, match="size"):
            size_of(wrong)


@pytest.mark.parametrize("missing", ["topology", "kind", "bytes"])
def test_what_is_missing_is_said(missing):
    given = {"topology": "v5p:4x4x4", "kind": "permute", "bytes": "1"}
    with pytest.raises(QuestionError, match=f"no {missing}"):
        asked(**{k: v for k, v in given.items() if k != missing})
    with pytest.raises(QuestionError, match="sharp"):
        asked(**given, sharp="perhaps")


def test_words():
    large = asked(topology="v5p:4x4x8", kind="all_gather", bytes="1GiB")
    assert verdict(large.result) == (
        "All-gather of 1.07 GB over 128 chips takes 1.79 ms (1.78 ms to 1.99 ms), bound by "
        "bandwidth; below 4.80 MB the hops take longer."
    )
    told = COLLECTIVE.words(large)
    assert "hide behind the backward pass from 765 tokens a chip" in told.verdict
    assert [r[0] for r in told.table.rows].count("1.07 GB (asked)") == 1 and len(told.table.rows) == len(SIZES) + 1
    small = asked(topology="v5p:4x4x8", kind="all_gather", bytes="64kB")
    assert verdict(small.result).endswith("bound by latency; above 4.80 MB its bytes take longer than its hops.")
    assert "nothing crosses a link" in verdict(asked(topology="torus:1", kind="permute", bytes="1").result)
    assert "hops take no time" in verdict(asked(topology="torus:4", kind="permute", bytes="1", hop_s=0).result)
    pair = [
        asked(topology=t, kind="all_reduce", bytes="1GiB", link_bytes_per_s=200e9).result
        for t in ("torus:8x8x16", "boardfly:1024", "torus:8x8x16")
    ]
    said = against(pair)
    assert "boardfly:1024 takes 2.26 ms, 1.26 times as long" in said and "1.79 ms, as long" in said


def test_the_figure_has_a_line_a_band_and_a_crossover_for_each_system():
    results = [asked(topology=t, kind="all_gather", bytes="1GiB").result for t in ("v5p:4x4x4", "v6e:16x16", "nvl:72")]
    figure = over_size(results)
    lines = {t.name: t for t in figure.data}
    for result in results:
        line = lines[result.spec]
        assert np.interp(np.log(GIB), np.log(line.x), np.log(line.y)) == pytest.approx(np.log(result.seconds), rel=1e-3)
    crossed = [t.x[0] for t in figure.data if t.name == "crossover"]
    assert crossed == [r.crossover_bytes for r in results]
    assert {"hops alone", "bytes alone"} <= set(lines) and sum("band" in (t.name or "") for t in figure.data) == 3
    named_at = [a.y for a in figure.layout.annotations if a.xref == "paper"]
    assert len(named_at) == 3 and min(np.diff(sorted(named_at))) > 0.1
    assert len(figure.to_json()) < 200_000
    still = over_size([asked(topology="torus:1", kind="permute", bytes="1").result])
    assert not any(t.name == "crossover" for t in still.data)


def test_rows_to_take_away():
    answer = asked(topology="v4:4x4x4", kind="all_reduce", bytes="1GiB")
    rows = rows_of(answer, [1e3, float(GIB)])
    assert list(rows["bound"]) == ["latency", "bandwidth"]
    assert rows["seconds"][1] == answer.result.seconds and (rows["low_s"] <= rows["high_s"]).all()


def test_the_panel(place):
    at = opened(
        "pages/topology/page.py",
        spec=["v6e:8x16", "torus:4x4", "v9:1"],
        show="collectives",
        kind="all_to_all",
        bytes="256MiB",
        fail="chip=5",
    )
    assert not at.exception
    said = words(at)
    assert "All-to-all of 268 MB over 127 chips takes " in said and "torus:4x4 takes " in said
    assert "v9" in said and "re-created" in said
    assert at.session_state["lab_axes"] == []
    at.query_params["bytes"] = "much"
    at.run()
    assert not at.exception and "size 'much'" in words(at)


def broken(topology: str, kind: str, *failures: str, axes: str = ""):
    """The times of a collective of 1 GB, by the catalogue's rates."""
    return answered(Asked(topology=topology, kind=kind, bytes="1GB", axes=axes or None, fail=failures), None).result


def test_the_smallest_slice_limits_what_crosses_the_data_centre_network():
    """Two chips are left of four: they send and receive the whole array over 6.25 GB/s each, 10 ms are inside."""
    found = broken("v5p:2x2x1:slices=2", "all_reduce", "chip=0;chip=1")
    assert found.seconds == pytest.approx(2 * 0.5 / (2 * 6.25) + 0.01)
    whole = broken("v5p:2x2x1:slices=2", "all_reduce")
    assert whole.seconds == pytest.approx(2 * 0.5 / (4 * 6.25) + 2 * 0.75 / 200)


@pytest.mark.parametrize(
    ("topology", "axes", "failure"),
    [
        ("v5e:2x4", "", "chip=0"),
        ("v5p:2x2x4", "x,y", "chip=0"),
        ("v5p:4x4x8", "", "chip=0"),
        ("v5p:4x4x8", "x,y", "chip=0"),
        ("v5p:4x4x8", "x", "link=0-1"),
        ("v5p:2x2x1:slices=2", "", "chip=0;chip=1"),
    ],
)
@pytest.mark.parametrize("kind", ["all_gather", "all_reduce", "all_to_all"])
def test_after_a_failure_the_time_lies_between_its_ends(topology, axes, failure, kind):
    found = broken(topology, kind, failure, axes=axes)
    assert found.low_s <= found.seconds * (1 + 1e-9) and found.seconds <= found.high_s * (1 + 1e-9)


def test_a_chip_with_one_link_left_in_its_group_receives_over_that():
    """Two of three parts over 100 GB/s; a whole group has two links a chip, and three of four parts to receive."""
    assert broken("v5p:2x2x4", "all_gather", "chip=0", axes="x,y").seconds == pytest.approx(2 / 3 / 100)
    assert broken("v5p:2x2x4", "all_gather", axes="x,y").seconds == pytest.approx(3 / 4 / 200)
    assert broken("v5p:2x2x4", "all_gather", "chip=0", axes="z").seconds == pytest.approx(3 / 4 / 100)
