"""Programs that captures of several hosts carry are kept once, whoever reads them and wherever the store lies."""

import pyarrow as pa
import pytest

from collectors.ingest import ingest
from collectors.ingesting.parts import spread
from runs.store import Store
from tests.collectors import compiled_files
from tests.collectors.test_far import Elsewhere
from tests.collectors.traces import PlaneBuilder, XSpace, hlo_proto
from tests.runs.objects import conftest as stores

PROTO = hlo_proto(compiled_files.program())
OTHER = PROTO + b"\x2a\x00"  # another file, though nothing of it is another program


@pytest.fixture
def hosts(tmp_path):
    """Traces of three hosts: two carry the same program under two numbers, the third another."""
    for host, programs in enumerate(({5: PROTO, 6: PROTO}, {5: PROTO}, {5: OTHER})):
        space = XSpace()
        plane = PlaneBuilder(space, "/host:metadata")
        for number, proto in programs.items():
            plane.metadata(f"jit_step({number})", **{"Hlo Proto": proto, "program_id": number})
        line = PlaneBuilder(space, "/host:CPU")
        line.plane.lines.add(id=1, name=b"python", timestamp_ns=1_700_000_000_000_000_000 + host)
        path = tmp_path / "in" / f"process_{host}" / "vm.xplane.pb"
        path.parent.mkdir(parents=True)
        path.write_bytes(space.SerializeToString())
    return tmp_path / "in"


@pytest.mark.parametrize("how", ["one process", "workers", "workers elsewhere"])
def test_they_are_one_file(hosts, tmp_path, monkeypatch, how):
    monkeypatch.setattr(spread, "TASK_FILES", 1)
    store = stores.made("file", tmp_path, monkeypatch).open() if how == "workers elsewhere" else Store(tmp_path / "s")
    run = store.get(ingest([hosts], store, engine=None if how == "one process" else Elsewhere()).run_id)
    rows = run.tables.arrow("modules", ["capture", "program", "file"]).to_pylist()
    files = {(row["capture"], row["program"]): row["file"] for row in rows}
    assert len(files) == 4 and len(set(files.values())) == 2
    kept = [name for name in run.manifest.files if name.startswith("blobs/")]
    assert sorted(kept) == sorted(f"blobs/{file}" for file in set(files.values()))
    held = {pa.input_stream(str(run.blob(file)), compression="zstd").read() for file in set(files.values())}
    assert held == {PROTO, OTHER} and list(run.files.verify()) == []
