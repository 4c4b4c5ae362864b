"""What the index of runs finds, sorts and counts is what looking at each row tells, whatever the rows are."""

import contextlib
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from app.library import ahead, coded, joined
from app.library.ahead import work_ahead
from app.library.coded import FEW, Coded, Ranked
from app.library.columns import COLUMNS, Row, named
from app.library.index import Index
from app.library.joined import Joined
from app.library.search import read
from app.library.seen import Seen
from runs.live import Live

WORDS = ("Zürich", "sweep", "FP8", "long ctx", "", "unknown", "Été", "a=b", "dpo-2")
SEARCHES = (
    *("", "sweep", "-sweep", '"long ctx"', "fp8 -dpo", "é", "1", "ru", "-7", '""', "a=b", "=", "."),
    *("name:zürich", "name=sweep", "-name:unknown,sweep", "chip:v5p,h100", "chip:unknown", "-chip:unknown", "id:run-1"),
    *("model:llama", "job:unknown", "kind=training", "live:job", "-live:unknown", "largest_loss:input"),
    *(
        "tag:team",
        "tag:team=ml",
        "-tag:team=ml,old",
        "group:p1",
        "group:p1/e2",
        "-group:p1",
        "project:p1 experiment:e2",
    ),
    *(
        "note:diverged",
        "-note:diverged",
        "note:e",
        "is:starred",
        "-is:starred",
        "is:live,noted",
        "is:damaged",
        "is:pending",
    ),
    *("mfu<30", "mfu>=30", "-mfu<30", "mfu:unknown", "-mfu:unknown", "mfu:30,unknown", "-mfu:30,40", "mfu=31"),
    *(
        "cost>5",
        "cost<=5",
        "-cost>5 mfu<45",
        "chips=256",
        "chips:64,unknown",
        "chips>1k",
        "hours<2d",
        "step_time<300ms",
    ),
    *("added:2026", "added>=2026-10", "added<2026-10-05", "-added>2026-10-05", "added<=9998", "added:unknown"),
    *(
        "chip:v5p mfu<30 tag:team -is:archived",
        "sweep cost>1 added>2020 -note:x group:p1",
        "is:simulated,tagged,grouped",
    ),
)


def made(rng: random.Random, number: int) -> Row:
    """A run of which anything may lack."""

    def one_of(*values, none=0.2):
        return None if rng.random() < none else rng.choice(values)

    run_id = f"run-{number}"
    if rng.random() < 0.05:
        return Row(run_id=run_id, address=run_id, name=run_id, readable=False, problem="bad")
    tags = {k: v for k, v in (("team", "ml"), ("team", "Ops"), ("old", ""), ("ort", "Zürich")) if rng.random() < 0.3}
    figures = ("mfu", "cost", "hours", "goodput", "step_time", "loss")
    project = one_of("p1", "P1", "p2") or ""
    live = Live(name=f"job{number % 3}", project="p", job="j", run_id=run_id) if number % 11 == 0 else None
    return Row(
        run_id=run_id,
        address=live.address if live else run_id,
        name=" ".join(rng.choice(WORDS) for _ in range(2)).strip() or f"x{number}",
        kind=rng.choice(("training", "serving", "compiled")),
        simulated=rng.random() < 0.1,
        created_ns=1_790_000_000_000_000_000 + rng.randrange(40) * 86_400_000_000_000,
        chip=one_of("TPU v5p", "H100 SXM", "tpu V5P"),
        chips=one_of(64, 256, 2048),
        model=one_of("llama2-7b", "Mixtral", ""),
        topology=one_of("8x8", "") or "",
        job=one_of("job-1", "Job-2") or "",
        project=project,
        experiment=(one_of("e1", "e2") or "") if project else "",
        tags=tags,
        notes=tuple(n for n in ("Diverged  twice", "x") if rng.random() < 0.2),
        starred=rng.random() < 0.2,
        archived=rng.random() < 0.1,
        demo=rng.random() < 0.1,
        live=live,
        problem=one_of("a table is missing", none=0.9),
        numbers={n: round(rng.random() * rng.choice((0.6, 9, 4000)), 2) for n in figures if rng.random() < 0.7},
        largest_loss=one_of("Input, 3 %", "Other, 9 %"),
        pending=rng.random() < 0.2,
    )


def changed(rng: random.Random, count: int = 300) -> tuple[Index, dict[str, Row]]:
    """An index into which runs came, went, and came as others."""
    index, rows = Index(), dict[str, Row]()
    for _ in range(3 * count):
        number = rng.randrange(count)
        if rng.random() < 0.2:
            index.remove(f"run-{number}")
            rows.pop(f"run-{number}", None)
        else:
            index.put(row := made(rng, number))
            rows[row.run_id] = row
        if rng.random() < 0.05:
            index.order()
    return index, rows


def in_order(rows) -> list[Row]:
    readable = sorted((r for r in rows if r.readable), key=lambda r: (-(r.created_ns or 0), r.run_id))
    return readable + sorted((r for r in rows if not r.readable), key=lambda r: r.run_id)


def by_hand(rows: list[Row], column, down: bool) -> list[Row]:
    """Sorted by a column: the order that they had among equals, and last of all what is not known."""
    told = [(column.value(row), row) for row in rows]
    known = [(v.casefold() if isinstance(v, str) else v, row) for v, row in told if v not in (None, "")]
    known.sort(key=lambda pair: pair[0], reverse=down)
    return [row for _, row in known] + [row for v, row in told if v in (None, "")]


@pytest.fixture(scope="module", params=[1, 2, 3])
def both(request) -> tuple[Index, list[Row]]:
    index, rows = changed(random.Random(request.param))
    return index, in_order(rows.values())


def test_the_order_is_that_of_the_rows(both):
    index, rows = both
    assert index.ids_of(index.order()) == [row.run_id for row in rows]


@pytest.mark.parametrize("text", SEARCHES)
def test_a_search_finds_what_looking_at_each_row_finds(both, text):
    index, rows = both
    asked = read(text)
    found = index.ids_of(index.matching(asked, index.order()))
    assert found == [row.run_id for row in rows if asked.matches(row)]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: c.name)
def test_rows_are_sorted_as_by_hand(both, column):
    index, rows = both
    for down in (False, True):
        told = index.ids_of(index.sorted(index.order(), named(column.name), down))
        assert told == [row.run_id for row in by_hand(rows, column, down)], down


def test_what_is_counted_is_counted_as_by_hand(both):
    index, rows = both
    told, counted = index.facets(index.order()), {n: Counter[str]() for n in ("chip", "kind", "model", "tag", "group")}
    for row in rows:
        for name in ("chip", "kind", "model", "group"):
            counted[name].update([value] if (value := getattr(row, name)) else [])
        counted["tag"].update(f"{k}={v}" for k, v in row.tags.items())
    assert {n: list(told[n].items()) for n in told} == {n: c.most_common() for n, c in counted.items()}


def test_what_is_hidden_is_in_no_view_and_no_count(both):
    index, rows = both
    hidden = frozenset(row.run_id for row in rows[::3])
    mine = [row for row in rows if row.run_id not in hidden]
    for archived, demo in ((False, False), (True, True), (True, False)):
        view = Seen(index, hidden).view(archived, demo)
        there = [row for row in mine if (archived or not row.archived) and (demo or not row.demo)]
        assert index.ids_of(view.slots) == [row.run_id for row in there]
        assert view.archived == sum(row.archived for row in mine)
        assert view.pending == [row.run_id for row in there if row.pending]
        assert view.damaged == {row.run_id: row.problem for row in mine if row.problem}


def test_a_search_is_kept_for_its_order_and_its_view():
    index, _ = changed(random.Random(5))
    seen = Seen(index, frozenset())
    every, some = seen.view(True, True), seen.view(False, False)
    for view in (every, some, every):
        for sort in ("-added", "-mfu", "name"):
            told = index.ids_of(seen.found(read("mfu<30"), view, named(sort.lstrip("-")), sort, "-added"))
            assert len(told) == len({*told}) and {*told} <= {*index.ids_of(view.slots)}
    assert len(seen.found(read("sweep"), every, named("added"), "-added", "-added")) < len(every.slots)


def test_values_that_no_run_has_any_more_are_let_go():
    index = Index()
    row = Row(run_id="a", address="a", name="a", created_ns=1)
    for number in range(3_000):
        index.put(replace(row, name=f"name {number}"))
    index.tidy()
    assert len(index.texts["name"].values) == 2 and index.texts["name"].at(0) == "name 2999"
    assert index.ids_of(index.matching(read("name:2999"), index.order())) == ["a"]


def test_nothing_is_kept_of_runs_that_are_gone():
    index = Index()
    for number in range(3_000):
        index.put(Row(run_id=f"{number}", address="a", name=f"name {number}", created_ns=1))
    for number in range(1, 3_000):
        index.remove(f"{number}")
    index.tidy()
    assert index.texts["name"].values == [None, "name 0"]


def test_names_that_come_one_by_one_stand_between_those_that_were_there():
    rng, ranked, keys = random.Random(4), Ranked(), [None, "m", "k"]
    ranked.ranks(keys)
    for _ in range(200):
        keys.append(rng.choice([None, "m", *(f"{rng.random():.3f}" for _ in range(5))]))
        ranks = ranked.ranks(keys)
        told = sorted((n for n in range(len(keys)) if keys[n] is not None), key=lambda n: ranks[n])
        assert [keys[n] for n in told] == sorted(k for k in keys if k is not None)
        assert all((ranks[a] == ranks[b]) == (keys[a] == keys[b]) for a, b in zip(told, told[1:], strict=False))
    closer = ["a" * n + "b" for n in range(2, 3 * FEW)]  # each between the one before and the first: no room is left
    for key in closer:
        keys.append(key)
        ranks = ranked.ranks(keys)
    assert np.argsort(ranks[-len(closer) :]).tolist() == sorted(range(len(closer)), key=closer.__getitem__)


def test_a_word_is_found_in_texts_that_were_put_together_and_in_those_that_came_since(monkeypatch):
    rng, texts, together = random.Random(3), list[str](), Joined()
    words = ("a", "ab", "aa", "ba", "é", "éa", "\udcff", "b\udcff", "", "abababab", "日", "z")
    monkeypatch.setattr(joined, "FEW", 5)
    for _ in range(60):
        texts.extend("".join(rng.choices("abé日\udcff", k=rng.randrange(5))) for _ in range(rng.randrange(4)))
        for word in words:
            assert together.holding(texts, word).tolist() == [word in text for text in texts]


def test_most_texts_are_looked_at_together(monkeypatch):
    class Text(str):
        def __contains__(self, word):
            pytest.fail("it is looked at by itself")

    texts = [Text(f"name {n}") for n in range(joined.FEW + 1)]
    assert Joined().holding(texts, "name 100").sum() == 2


def test_a_run_whose_slot_another_had_is_found_by_its_own_id(monkeypatch):
    monkeypatch.setattr(joined, "FEW", 0)
    index = Index()
    for run_id in ("first", "second"):
        index.put(Row(run_id=run_id, address=run_id, name="x", created_ns=1))
        assert index.ids_of(index.matching(read(run_id), index.order())) == [run_id]
        index.remove(run_id)
    index.put(Row(run_id="third", address="third", name="x", created_ns=1))
    assert not len(index.matching(read("second"), index.order()))


def test_slots_that_others_took_since_are_looked_at_by_themselves_until_they_are_many():
    index = Index()
    for number in range(2 * joined.FEW):
        index.put(Row(run_id=f"old-{number}", address="a", name="x", created_ns=1))
    assert len(index.matching(read("id:old"), index.order())) == 2 * joined.FEW
    for number in range(0, 2 * joined.FEW, 3):
        index.remove(f"old-{number}")
        index.put(Row(run_id=f"new-{number}", address="a", name="x", created_ns=1))
        if number in (0, 9, joined.FEW):
            assert len(index.matching(read("id:new"), index.order())) == number // 3 + 1
    assert len(index.matching(read("id:new"), index.order())) == len(range(0, 2 * joined.FEW, 3))
    assert len(index.matching(read("id:old"), index.order())) == 2 * joined.FEW - len(range(0, 2 * joined.FEW, 3))


@pytest.mark.parametrize("many", [0, 10**9])
def test_keys_get_the_same_numbers_wherever_they_are_sorted(monkeypatch, many):
    monkeypatch.setattr(coded, "MANY", many)
    rng, letters = random.Random(2), ("", "é", "日", "\U0001f600", "a", "\uffff", "\udcff", "b")
    for _ in range(300):
        keys = [rng.choice((None, "".join(rng.choices(letters, k=rng.randrange(4))))) for _ in range(rng.randrange(9))]
        known = sorted({key for key in keys if key is not None})
        numbers = [np.nan if key is None else known.index(key) for key in keys]
        np.testing.assert_array_equal(Ranked().ranks(keys), numbers)


def meddle(index: Index, change: str) -> None:
    """What somebody does while it is worked ahead."""
    if change == "another slot":
        index.remove("r-3")
        index.put(Row(run_id="late", address="a", name="late", tags={"late": ""}, created_ns=9))
    elif change == "more":
        index.put(Row(run_id="late", address="a", name="late", tags={"late": ""}, created_ns=9))
    elif change == "tidied":
        for number in range(40):
            index.remove(f"r-{number}")
        for text in index.texts.values():
            text.tidy()
        index.put(Row(run_id="late", address="a", name="late", tags={"late": ""}, created_ns=9))


@pytest.mark.parametrize("change", ["", "another slot", "more", "tidied"])
@pytest.mark.parametrize("turn", range(0, 44, 3))
def test_what_was_worked_ahead_finds_and_sorts_the_same_whatever_came_meanwhile(monkeypatch, change, turn):
    monkeypatch.setattr(ahead, "MANY", 10)
    rows = [
        Row(run_id=f"r-{n}", address="a", name=f"name {n % 50}", tags={f"k{n % 30}": ""}, created_ns=n)
        for n in range(60)
    ]
    index, plain, turns = Index(), Index(), iter(range(1000))
    for row in rows:
        index.put(row)
        plain.put(row)

    @contextlib.contextmanager
    def held():
        if next(turns) == turn:
            meddle(index, change)
        yield

    class Held:
        def __enter__(self):
            self.within = held()
            self.within.__enter__()

        def __exit__(self, *error):
            self.within.__exit__(*error)

    work_ahead(index, Held())
    assert (used := next(turns)) > 20
    meddle(plain, change if turn < used else "")
    for search in ("name", "late", "k2", "r-3", "name:late", "tag:late", "id:late"):
        found = [one.ids_of(one.matching(read(search), one.order())) for one in (index, plain)]
        assert sorted(found[0]) == sorted(found[1]), search
    for column in ("name", "tags"):
        found = [one.ids_of(one.sorted(one.order(), named(column), False)) for one in (index, plain)]
        assert found[0] == found[1], column


def test_after_it_was_worked_ahead_no_text_is_looked_at_again(monkeypatch):
    monkeypatch.setattr(ahead, "MANY", 10)
    index = Index()
    for number in range(2 * joined.FEW):
        index.put(Row(run_id=f"r-{number}", address="a", name=f"Name {number}", created_ns=1))
    work_ahead(index, contextlib.nullcontext())
    monkeypatch.setattr(Joined, "_put_together", lambda *_: pytest.fail("they are put together once more"))
    monkeypatch.setattr(Ranked, "_anew", lambda *_: pytest.fail("they are sorted once more"))
    assert len(index.matching(read("name"), index.order())) == 2 * joined.FEW
    assert len(index.sorted(index.order(), named("name"), False)) == 2 * joined.FEW


def test_a_function_is_asked_once_of_each_value():
    coded, asked = Coded(4), list[str | None]()

    def of(value):
        asked.append(value)
        return value or ""

    for slot, text in enumerate(("a", "b", "a", "a")):
        coded.put(slot, text)
    for _ in range(2):
        assert coded.where(of, lambda text: text == "a").tolist() == [True, False, True, True]
    assert asked == [None, "a", "b"]
