"""Real profiles cut into pieces: the same tables from both, and XProf's own reader reads what the tests write."""

import gzip
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collectors.riegeli_files import File, continuous
from tests.collectors.test_riegeli import CODECS, NAME, cut, told
from tests.collectors.traces import XSpace, got

DATA = Path(__file__).parents[2].parent / "shared" / "data"
TPU = DATA / "xplane" / "tpu_v6e_4chip_host_offload.xplane.pb"
FILES = sorted(
    [*(DATA / "xplane").glob("[!c]*.xplane.pb"), *(DATA / "more" / "corrections" / "xplane").glob("*.xplane.pb*")]
)
BUNDLED = sorted((Path(__file__).parents[2] / "reference" / "runs" / "training" / "profiles").rglob("*.xplane.pb.gz"))[
    :1
]
TOOLS = ("hlo_stats", "overview_page", "op_profile")
_ASK = """
import hashlib, sys
from xprof.convert import raw_to_tool_data
for tool in sys.argv[2:]:
    data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], tool, {})
    print("ANSWER", tool, hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest())
"""

needs_traces = pytest.mark.skipif(not TPU.exists(), reason="no sample traces beside the project")


def content(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


@pytest.mark.skipif(not FILES, reason="no sample traces beside the project")
@pytest.mark.parametrize("path", [*FILES, *BUNDLED], ids=lambda p: p.name)
def test_pieces_tell_what_the_whole_tells(tmp_path, path):
    raw = content(path)
    space = XSpace.FromString(raw)
    whole, pieces = told(got(tmp_path, raw, NAME)), told(got(tmp_path, continuous(cut(space, 5)), NAME))
    exact = [t for t in whole if t not in ("ops", "op_events", "op_stats", "lost")]
    assert {t: pieces[t] for t in exact} == {t: whole[t] for t in exact}
    if pieces["lost"] == whole["lost"]:
        assert pieces == whole
    else:  # by the device's own clock two operations change places where the cut is: their own time is not exact
        further = [lost for lost in pieces["lost"] if lost not in whole["lost"]]
        assert all("exact self times" in lost for lost in further)


def asked(folder: Path, name: str, data: bytes) -> dict[str, str]:
    """What XProf makes of a file, by tool: digests."""
    (path := folder / name).parent.mkdir(parents=True)
    path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", _ASK, str(path), *TOOLS], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("ANSWER"))


@needs_traces
def test_xprof_reads_what_the_tests_write(tmp_path):
    """Its reader checks every hash: headers, chunks and hashes are as the format has them."""
    pytest.importorskip("xprof")
    raw = TPU.read_bytes()
    whole = asked(tmp_path, "whole/h.xplane.pb", raw)
    assert len(whole) == len(TOOLS) and hashlib.sha256(b"").hexdigest() not in whole.values()
    for codec in CODECS:
        assert asked(tmp_path, f"{codec}/h.xplane.riegeli", continuous([raw], codec)) == whole
    pieces = cut(XSpace.FromString(raw), 4)
    assert asked(tmp_path, "pieces/h.xplane.riegeli", continuous(pieces)) == whole
    assert asked(tmp_path, "together/h.xplane.riegeli", File().records(*pieces).padded()) == whole
