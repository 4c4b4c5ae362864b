"""Which devices a profile saw at work."""

import subprocess
import sys

import pyarrow as pa

from runs.devices import COLUMNS, devices

TEXT = pa.dictionary(pa.int32(), pa.string())


def rows(*found):
    columns = [pa.array(list(values), kind) for values, kind in zip(zip(*found, strict=True), KINDS, strict=True)]
    return pa.table(columns, names=list(COLUMNS))


KINDS = (TEXT, pa.int32(), TEXT)


def test_devices_are_told_by_lines_on_which_they_work():
    seen = rows(("a", 0, "compute"), ("a", 0, "async"), ("b", 0, "module"), ("a", 1, "host"), ("a", 2, None))
    assert devices(seen) == {("a", 0), ("b", 0)}
    assert devices(rows((None, 3, "compute"), ("a", None, "compute"), ("", 10, "async"))) == {("", 10)}
    assert devices(seen.slice(0, 0)) == set()


def test_tables_of_several_batches_with_texts_of_their_own():
    parts = pa.concat_tables([rows(("b", 1, "async"), ("a", 1, "compute")), rows(("a", 12, "compute"))])
    assert devices(parts) == {("a", 1), ("b", 1), ("a", 12)}


def test_ingest_of_a_profile_does_not_wait_for_pandas(tmp_path):
    """It takes longer to load than a small profile to read."""
    from tests.collectors.traces import PlaneBuilder, XSpace, environment

    space = XSpace()
    environment(space)
    PlaneBuilder(space, "/device:TPU:0").line("XLA Ops", [("fusion", 1000, 50)])
    (tmp_path / "host.xplane.pb").write_bytes(space.SerializeToString())
    code = (
        "import sys; from app.cli import main; "
        f"main(['ingest', {str(tmp_path / 'host.xplane.pb')!r}, '--store', {str(tmp_path / 'store')!r}]); "
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "False", done.stdout + done.stderr
