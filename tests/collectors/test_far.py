"""Inputs in a bucket, read there by workers: the run is that of the same files in a folder, and nothing of them comes
through the process that asked."""

import gzip
import importlib.util
import json
import os
import zipfile

import pytest

from app.fetching.addresses import address
from app.fetching.remote import listed
from benchmarks.dask_cluster import DaskCluster
from collectors.ingest import ingest
from collectors.ingesting.far import files as far_files
from collectors.ingesting.far import looking
from collectors.ingesting.parts import spread
from errors import InputError
from runs.objects import faults
from runs.objects.bucket import BucketObjects
from runs.objects.coming import Coming
from runs.objects.opening import objects_at
from runs.objects.store import ObjectStore
from runs.parts import in_parts
from runs.spread.choosing import engine_of
from runs.spread.engine import Outcome, named, perform
from runs.store import Store
from tests.collectors import mlflow_files, test_trainer_state
from tests.collectors.ingesting import LOG, nothing_stored
from tests.collectors.kineto_traces import kernel, op, trace
from tests.collectors.test_ahead import write
from tests.collectors.test_kineto_graphs import NODES, RAN, captured, replayed
from tests.collectors.test_parts import rows
from tests.runs.objects.conftest import bucket  # noqa: F401 - a fixture
from tests.runs.objects.test_bucket_faults import between, each_first

HOSTS = 2
RUN = test_trainer_state.RUN
AGAIN = LOG.replace("1.0", "1.1")


class Elsewhere:
    """An engine that says its workers are other machines, and is this process. `between` is called after each map."""

    elsewhere = True

    def __init__(self, between=lambda: None):
        self._between = between

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def map(self, work, tasks, check, report):
        for task in tasks:
            check()
            yield Outcome(task=task, answer=perform(work, str(named(work.stamp)()), json.loads(json.dumps(task.asked))))
        self._between()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Traces, a log, a sidecar, a trace cut short and an empty one; an archive, an export of a log, and a picture."""
    folder = tmp_path_factory.mktemp("inputs")
    write(folder, ranks=HOSTS)
    (folder / "broken.pt.trace.json").write_bytes((folder / "rank0.pt.trace.json").read_bytes()[:-700])
    (folder / "empty.pt.trace.json").write_bytes(b"")
    (folder / "chipledger.json").write_text(json.dumps({"chips": HOSTS, "model": "llama2-7b"}))
    at = "2026-01-05T10:00:"
    lines = [{"log": f"{line}\n", "time": f"{at}{n:02}Z"} for n, line in enumerate(AGAIN.splitlines())]
    (folder / "deep").mkdir()
    (folder / "deep" / "docker.json").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n")
    with zipfile.ZipFile(folder / "more.zip", "w") as archive:
        archive.writestr("rank9.log", LOG.replace("1.0", "1.3"))
    return folder


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(spread, "GATHERED_BYTES", 6000)
    monkeypatch.setattr(spread, "TASK_FILES", 5)
    monkeypatch.setattr(looking, "TASK_FILES", 7)
    monkeypatch.setattr(faults, "FIRST_S", 0.001)
    far_files._openers.clear()


@pytest.fixture
def there(bucket, folder):  # noqa: F811
    """The bucket with the files, below `in`."""
    objects = objects_at(bucket.url)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        objects.create(f"in/{path.relative_to(folder).as_posix()}", path.read_bytes())
    return bucket


def inputs(place, what="in"):
    return listed(address(f"{place.url}/{what}"), None)


def content(run):
    return {name: run.files.whole(name).read_bytes() for name in run.manifest.files}


@pytest.fixture(scope="module")
def one(folder, tmp_path_factory):
    """(what became of it, run) of the folder, read in parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spread, "GATHERED_BYTES", 6000)
        patch.setattr(spread, "TASK_FILES", 5)
        store = Store(tmp_path_factory.mktemp("one"))
        done = ingest([folder], store, engine=Elsewhere(), name="a run")
        return done, store.get(done.run_id)


def same(one, done, store):
    (told, before), after = one, store.get(done.run_id)
    assert told == done and before.manifest.facts == after.manifest.facts
    assert before.manifest.sources == after.manifest.sources
    assert content(before) == content(after) and in_parts(after.manifest.files) and rows(before) == rows(after)
    return True


def test_a_bucket_of_files_is_the_run_of_the_folder_with_them(one, there, tmp_path):
    store = Store(tmp_path / "store")
    done = ingest([], store, engine=Elsewhere(), far=inputs(there), name="a run")
    assert same(one, done, store) and list((store.root / "partial").iterdir()) == []
    assert ingest([], store, engine=Elsewhere(), far=inputs(there), name="a run").existed


def test_a_file_beside_its_own_gzip_counts_once_in_a_bucket_and_across_one(bucket, store, tmp_path):  # noqa: F811
    objects = objects_at(bucket.url)
    objects.create("in/a.log", LOG.encode())
    objects.create("in/packed/a.log.gz", gzip.compress(LOG.encode()))
    (tmp_path / "c.log.gz").write_bytes(gzip.compress(LOG.encode(), 1))
    done = ingest([tmp_path / "c.log.gz"], store, engine=Elsewhere(), far=inputs(bucket))
    said = "the same bytes as a.log where both are unpacked, read once"
    assert done.tables == {"steps": 10} and {f"packed/a.log.gz: {said}", f"c.log.gz: {said}"} <= set(done.warnings)


def test_what_is_one_input_together_is_so_in_a_bucket(bucket, store, tmp_path):  # noqa: F811
    """A folder of runs of MLflow, and states of one training."""
    mlflow_files.folder(tmp_path / "in" / "mlruns", mlflow_files.run("a" * 32, mlflow_files.curve()))
    for name, text in (("c", test_trainer_state.state(test_trainer_state.trained(20), 20)), ("end", RUN)):
        (tmp_path / "in" / name).mkdir()
        (tmp_path / "in" / name / "trainer_state.json").write_text(text)
    objects = objects_at(bucket.url)
    for path in sorted(p for p in (tmp_path / "in").rglob("*") if p.is_file()):
        objects.create(f"in/{path.relative_to(tmp_path / 'in').as_posix()}", path.read_bytes())
    done = ingest([], store, engine=Elsewhere(), far=inputs(bucket))
    assert {file.name: file.state for file in done.files} == {
        "mlruns": "read",
        "end/trainer_state.json": "read",
        "c/trainer_state.json": "left_out",
    }
    assert ingest([tmp_path / "in"], store).existed


def test_nothing_but_what_mlflow_keeps_of_runs_is_brought_here_from_folders_called_as_its_own(bucket, tmp_path):  # noqa: F811
    """`outputs` is what Hydra and many jobs call the folder of all that they leave: weights among them."""
    mlflow_files.folder(tmp_path / "in" / "mlruns", mlflow_files.run("a" * 32, mlflow_files.curve(2)))
    (tmp_path / "in" / "mlruns" / "1" / ("a" * 32) / "outputs" / "m-1").mkdir(parents=True)
    (tmp_path / "in" / "mlruns" / "1" / ("a" * 32) / "outputs" / "m-1" / "meta.yaml").write_text("source_id: m-1\n")
    kept = sorted(p.relative_to(tmp_path / "in").as_posix() for p in (tmp_path / "in").rglob("*") if p.is_file())
    others = ("outputs/checkpoint-1/model.bin", "metrics/curve.npy", "inputs/words.txt", "params/weights.bin")
    for name in others:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(b"sun and sea\n" if name.endswith(".txt") else bytes(range(256)) * 8)
    objects = objects_at(bucket.url)
    for name in (*kept, *others):
        objects.create(f"in/{name}", (tmp_path / "in" / name).read_bytes())
    found = looking.sources(inputs(bucket), Elsewhere(), tmp_path / "here", lambda: None, lambda done: None)
    assert sorted(name for name, source in found if not isinstance(source, looking.FarSource)) == kept


def test_parts_lie_in_the_store_before_the_run_does_and_nothing_is_left_of_them(one, there, tmp_path):
    store = ObjectStore(f"{there.url}/store", tmp_path / "asks")
    done = ingest([], store, engine=Elsewhere(), far=inputs(there), name="a run")
    assert same(one, done, ObjectStore(f"{there.url}/store", tmp_path / "reads"))
    assert list(objects_at(there.url).entries("store/.coming")) == []
    assert list(store.get(done.run_id).files.verify_there()) == []


@pytest.mark.parametrize("kind", ["file", pytest.param("gs", marks=pytest.mark.slow)])
def test_parts_lie_in_stores_of_every_kind(one, folder, tmp_path, kind, monkeypatch):
    from tests.runs.objects.conftest import made

    place = made(kind, tmp_path, monkeypatch)
    done = ingest([folder], place.open(), engine=Elsewhere(), name="a run")
    assert same(one, done, place.open("two"))
    assert list(objects_at(place.url).entries(".coming")) == []


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None and not os.environ.get("CI"),
    reason="Dask is not installed: pip install 'chipledger[cluster]'",
)
def test_on_a_cluster_no_byte_of_the_inputs_comes_to_who_asks(one, there, tmp_path, monkeypatch):
    came, real = [], BucketObjects.read

    def read(self, key, *asked):
        came.append(f"{self.url}/{key}")
        return real(self, key, *asked)

    monkeypatch.setattr(BucketObjects, "read", read)
    with DaskCluster(tmp_path / "cluster", 2) as cluster:
        store = ObjectStore(f"{there.url}/store", tmp_path / "asks")
        done = ingest([], store, engine=engine_of(cluster.address), far=inputs(there), name="a run")
    asked = {url.partition("/in/")[2] for url in came if "/in/" in url}
    assert asked == {"more.zip", "deep/docker.json"}  # what no worker reads as it lies there
    assert same(one, done, store)


@pytest.fixture
def graphs(bucket, tmp_path):  # noqa: F811
    """Traces of two ranks that run graphs which others, beside them, captured; in the bucket below `graphs`."""
    folder = tmp_path / "graphs"
    (folder / "capture_traces").mkdir(parents=True)
    for rank in range(HOSTS):
        told = {"distributedInfo": {"rank": rank, "world_size": HOSTS}}
        moved = [op(f"shift{n}", 0.5 * n, 0.25) for n in range(9)]  # numbers of texts and calls are others here
        (folder / f"rank_{rank}.json").write_bytes(trace([*moved, *replayed(*RAN)], **told))
        apart = trace([*captured(*NODES), kernel("eager", 60 + rank, 1, 77)], **told)
        (folder / "capture_traces" / f"rank_{rank}.json").write_bytes(apart)
    objects = objects_at(bucket.url)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        objects.create(f"graphs/{path.relative_to(folder).as_posix()}", path.read_bytes())
    return folder, bucket


def test_captures_of_graphs_beside_traces_are_read_in_a_bucket_as_in_a_folder(graphs, tmp_path, monkeypatch):
    monkeypatch.setattr(spread, "TASK_FILES", 1)  # so that what lies beside a trace is no file of its task
    folder, place = graphs
    told = []
    for name, asked in (
        ("plain", {"paths": [folder]}),
        ("workers", {"paths": [folder], "engine": Elsewhere()}),
        ("far", {"paths": [], "engine": Elsewhere(), "far": inputs(place, "graphs")}),
    ):
        store = Store(tmp_path / name)
        done = ingest(store=store, name="a run", **asked)
        told.append((done, rows(store.get(done.run_id))))
    assert told[0] == told[1] == told[2]
    on_devices = [o for o in told[2][1]["ops"] if o["device"] is not None]
    assert {o["scope"] for o in on_devices if o["op"] == "aten::mm"} == {"Linear_0"}


def test_what_lies_beside_a_trace_is_read_where_the_trace_is(graphs, tmp_path, monkeypatch):
    """By workers, once a task, and nothing of it by whoever asks."""
    came, real = [], far_files._brought
    monkeypatch.setattr(far_files, "_brought", lambda file, path: (came.append(file.name), real(file, path))[1])
    asked, here = Elsewhere(), []
    monkeypatch.setattr(spread.work, "written", here.append)
    ingest([], ObjectStore(f"{graphs[1].url}/store", tmp_path / "asks"), engine=asked, far=inputs(graphs[1], "graphs"))
    assert here == [] and sorted(came) == sorted(2 * [file.name for file in inputs(graphs[1], "graphs")])


def test_a_capture_that_is_another_by_the_time_it_is_read_leaves_no_run(graphs, store, monkeypatch):
    monkeypatch.setattr(spread, "TASK_FILES", 1)
    files, key = inputs(graphs[1], "graphs"), "graphs/capture_traces/rank_1.json"

    def written():
        objects = objects_at(graphs[1].url)
        data = objects.read(key)
        objects.delete([key])
        objects.create(key, data.replace(b"eager", b"other"))

    with pytest.raises(InputError, match=r"capture_traces/rank_1.json: was written to between two looks"):
        ingest([], store, engine=Elsewhere(written), far=files)
    assert nothing_stored(store)


@pytest.mark.parametrize("harm", ["changed", "longer", "gone"])
def test_a_file_that_is_another_by_the_time_it_is_read_leaves_no_run(there, store, harm):
    files, key = inputs(there), "in/rank1.pt.trace.json"

    def written():
        data = objects_at(there.url).read(key)
        objects_at(there.url).delete([key])
        if harm != "gone":
            objects_at(there.url).create(key, data.replace(b"900", b"901") if harm == "changed" else data + b" ")

    with pytest.raises(InputError, match="rank1.*(written to|no such file there any more|no longer of the)") as refused:
        ingest([], store, engine=Elsewhere(written), far=files)
    assert nothing_stored(store) and "\n" not in str(refused.value)


def test_parts_that_are_gone_before_the_run_is_there_are_told(there, tmp_path, monkeypatch):
    store = ObjectStore(f"{there.url}/store", tmp_path / "asks")
    real = Coming.leave

    def left(self, name, files):
        below = real(self, name, files)
        self.objects.delete([f"{below}/op_events.parquet"])
        return below

    monkeypatch.setattr(Coming, "leave", left)
    with pytest.raises(InputError, match=r"op_events.parquet: what a worker left in the store is gone"):
        ingest([], store, engine=Elsewhere(), far=inputs(there))
    assert nothing_stored(store) and list(objects_at(there.url).entries("store/runs")) == []


@pytest.fixture
def faulty(there, monkeypatch):
    with between(os.environ["AWS_ENDPOINT_URL"]) as (at, state):
        monkeypatch.setenv("AWS_ENDPOINT_URL", at)
        yield there, state


@pytest.mark.slow
@pytest.mark.parametrize("fault", [(503, "SlowDown"), "cut"])
def test_what_passes_costs_time_alone(one, faulty, tmp_path, fault):
    place, state = faulty
    state.fault = each_first(fault)
    store = ObjectStore(f"{place.url}/store", tmp_path / "asks")
    assert same(one, ingest([], store, engine=Elsewhere(), far=inputs(place), name="a run"), store)


@pytest.mark.parametrize(
    ("what", "fault", "said"),
    [
        ("GET", (400, "ExpiredToken"), "the credentials have expired"),
        ("GET", (404, "NoSuchBucket"), "no such bucket"),
        ("GET", (503, "SlowDown"), "it asks for fewer requests, asked 6 times"),
        ("PUT", (403, "AccessDenied"), "these credentials may not do that"),
        ("PUT", (403, "RequestTimeTooSkewed"), "the clock of this machine"),
    ],
)
def test_what_does_not_pass_is_one_sentence_and_no_run(faulty, tmp_path, what, fault, said):
    """From the third file on, of those that workers read or of those that they leave."""
    place, state = faulty
    store = Store(tmp_path / "store") if what == "GET" else ObjectStore(f"{place.url}/store", tmp_path / "asks")
    files, seen = inputs(place), []

    def told(method, path):
        if method == what and ("/in/" in path or ".coming" in path):
            seen.append(path)
        return fault if len(seen) > 2 and seen[-1] == path else None

    state.fault = told
    with pytest.raises(InputError, match=said) as refused:
        ingest([], store, engine=Elsewhere(), far=files)
    state.fault = lambda method, path: None
    assert "SECRET" not in str(refused.value) and "\n" not in str(refused.value)
    assert str(refused.value).startswith(place.url)
    assert nothing_stored(store) and list(objects_at(place.url).entries("store/runs")) == []


def test_a_bucket_without_files_is_told(there):
    with pytest.raises(InputError, match="no such file or folder there"):
        inputs(there, "nowhere")
    with pytest.raises(InputError, match="no such file or folder there|no file is there"):
        inputs(there, "in/**/*.xyz")


def test_what_no_reader_knows_is_refused_as_in_a_folder(there, store):
    with pytest.raises(InputError, match="picture.png: no file of a known format: it looks like a PNG picture"):
        ingest([], store, engine=Elsewhere(), far=inputs(there, "in/picture.png"))


def test_a_folder_of_somebody_else_is_not_used(there, store, tmp_path, monkeypatch):
    monkeypatch.setattr(far_files.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / f"chipledger-{os.getuid()}").symlink_to(tmp_path)
    with pytest.raises(InputError, match="belongs to another user"):
        ingest([], store, engine=Elsewhere(), far=inputs(there))
    assert nothing_stored(store)
