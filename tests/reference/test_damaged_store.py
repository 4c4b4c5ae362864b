"""A stored run that was damaged: every answer is the one it was, or one sentence that names the file."""

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from app.cli.commands.doctor import verified
from app.listing import list_runs
from app.questions import question as named
from app.workspace import Workspace
from collectors.ingest import ingest
from errors import InputError, QuestionError
from errors.options import parse_options
from runs.registry import Registry
from runs.run import MANIFEST, Run
from runs.store import Store

FOLDER = Path(__file__).resolve().parents[2] / "reference" / "runs" / "training"
FLIPS, ASKED = 300, 20
QUICK = ("ledger", "goodput", "steps", "interruptions", "checkpoints", "stragglers", "roofline", "load")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    store = Store(tmp_path_factory.mktemp("store"))
    ingest([FOLDER], store)
    return store


@pytest.fixture(scope="module")
def run(store) -> Run:
    return store.runs()[0]


@pytest.fixture(scope="module")
def whole(run) -> dict[str, str]:
    return {name: asked(run, name) for name in QUICK}


def asked(run: Run, question: str) -> str:
    """The answer as text; where there is none, why."""
    try:
        options = parse_options(named(question).options, {})
        result = named(question).analyze(run.tables, run.manifest.facts, options)
    except (QuestionError, InputError) as e:
        assert "\n" not in str(e)
        return f"{type(e).__name__}: {e}"
    return json.dumps(result.to_dict(), sort_keys=True, default=str)


def place(store: Store) -> Workspace:
    return Workspace(store, Registry(store.root / "registry.db"))


def files_of(run: Run) -> list[Path]:
    return sorted(p for p in run.folder.rglob("*") if p.is_file())


def damaging(path: Path, damage, number: int):
    """Change a file, and let its time say so, as every write does after a tick of the clock."""
    original = path.read_bytes()
    path.unlink() if damage is None else path.write_bytes(damage(original))
    if damage is not None:
        os.utime(path, ns=(number * 1_000_000_000, number * 1_000_000_000))
    return original


def flipped(at: int):
    def flip(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        return bytes(changed)

    return flip


def places(run: Run) -> list[tuple[Path, int]]:
    """(file, bit): a third of them anywhere, the others spread over the files, so that small ones are hit as well."""
    dice, files = random.Random(20260105), files_of(run)
    sizes = [p.stat().st_size for p in files]
    anywhere = dice.choices(files, weights=sizes, k=FLIPS // 3)
    chosen = [*anywhere, *(files[n % len(files)] for n in range(FLIPS - len(anywhere)))]
    return [(p, dice.randrange(8 * p.stat().st_size)) for p in chosen]


def test_every_flipped_bit_is_found_and_named(run, store):
    """In a table by whoever reads it, in the manifest by whoever opens the run; or it changes nothing that it says."""
    manifest = run.manifest
    harmless = 0
    for number, (path, bit) in enumerate(places(run)):
        original = damaging(path, flipped(bit), number)
        there = Run(run.folder)
        relative = path.relative_to(run.folder).as_posix()
        try:
            if relative == MANIFEST:
                harmless += there.manifest == manifest
            elif relative.startswith("tables/"):
                there.tables.arrow(path.stem)
            else:
                there.blob(relative.removeprefix("blobs/"))
            assert relative == MANIFEST and there.manifest == manifest, (relative, bit)
        except InputError as e:
            assert str(e).startswith(f"{run.run_id}/{relative}: ") and "\n" not in str(e)
        assert list_runs(place(store))["runs"][0]["run_id"] == run.run_id
        path.write_bytes(original)
    assert harmless <= 3, "white space of the manifest"


def test_answers_over_flipped_bits_are_as_before_or_name_the_file(run, whole):
    for number, (path, bit) in enumerate(places(run)[:: FLIPS // ASKED]):  # of every kind of file one at least
        original = damaging(path, flipped(bit), 1_000 + number)
        relative = path.relative_to(run.folder).as_posix()
        for question in random.Random(number).sample(QUICK, 2):
            told = asked(Run(run.folder), question)
            assert told == whole[question] or told.startswith(f"InputError: {run.run_id}/{relative}: "), (relative, bit)
        path.write_bytes(original)


DAMAGES = {
    "missing": None,
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "longer": lambda data: data + b"x",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_missing_cut_and_empty_files_are_named_and_nothing_is_concluded(run, store, whole, damage):
    tables = [p for p in files_of(run) if p.suffix != ".json" and "tables" in p.parts]
    for number, path in enumerate((run.folder / MANIFEST, *tables, files_of(run)[0])):
        original = damaging(path, damage, 2_000 + number)
        relative = path.relative_to(run.folder).as_posix()
        (row,) = list_runs(place(store))["runs"]
        if damage is None or "blobs" not in relative:  # of blobs a list looks at the names alone
            assert row["problem"].startswith(f"{run.run_id}/{relative}: ")
        assert (row["name"] is None) == (relative == MANIFEST)
        (told,) = verified(place(store))
        assert len(told["damaged"]) == 1 and told["damaged"][0].startswith(f"{run.run_id}/{relative}: ")
        for question in ("steps", "goodput") if path.stem in ("steps", "lifecycle", "run") else ():
            told = asked(Run(run.folder), question)
            assert told == whole[question] or told.startswith(f"InputError: {run.run_id}/{relative}: ")
        path.write_bytes(original)
    assert verified(place(store))[0]["damaged"] == [] and list_runs(place(store))["runs"][0]["problem"] is None


def test_without_its_steps_no_question_concludes_that_none_was_kept(run):
    path = run.tables.path("steps")
    kept = path.rename(path.with_suffix(".away"))
    told = {name: asked(Run(run.folder), name) for name in ("ledger", "goodput", "steps", "mfu")}
    kept.rename(path)
    assert all(text.startswith(f"InputError: {run.run_id}/tables/steps.parquet: is missing") for text in told.values())


def test_an_ingest_of_the_same_input_mends_a_damaged_run(store, run, tmp_path):
    copy = Store(tmp_path / "store")
    shutil.copytree(run.folder, copy.runs_folder / run.run_id)
    path = copy.get(run.run_id).tables.path("lifecycle")
    damaging(path, flipped(999), 5)
    done = ingest([FOLDER], copy)
    assert done.run_id == run.run_id and done.replaced and "was damaged, and was read anew" in done.warnings[0]
    assert asked(copy.get(run.run_id), "goodput") == asked(run, "goodput")
    assert ingest([FOLDER], copy).existed and not list((copy.root / "partial").iterdir())
