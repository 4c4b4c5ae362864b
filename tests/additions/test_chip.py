"""A chip that is added to the catalogue's data, and nowhere else, is known to the reader of profiles, the topologies,
the placement of meshes, the TPU compiler's names and the command line.

The project is looked at through links, but for the data files, which are copied: its compiled kernels stay kept.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collectors.traces import PlaneBuilder, XSpace, environment

PROJECT = Path(__file__).parents[2]
GPU = {
    "aliases": ["toyg"],
    "plane": {
        "vendor": "Nvidia",
        "capability": [99, 1],
        "cores": [7],
        "over_gb": 10,
        "up_to_gb": 20,
        "source": "planes",
        "mark": "secondary",
    },
    "wiring": {"name": "toyg", "to_switches": [6, 12], "source": "wiring", "mark": "secondary"},
}
TPU = {
    "aliases": ["toyt"],
    "jax": {"device_kind": "TPU toyt lite", "source": "libtpu-devices", "mark": "derived"},
    "compiler": {"name": "toytc", "config": "megatoy", "source": "libtpu-devices", "mark": "derived"},
}
FAMILY = {"accelerator_types": {"prefixes": ["toyt"], "count_per_chip": 1}, "gke_accelerators": [], "machines": {}}
SEEN_BY_A_PLANE = {"device_vendor": "Nvidia", "compute_cap_major": 99, "compute_cap_minor": 1, "core_count": 7}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """The project with a toy GPU, a toy TPU and its slices in the data files."""
    root = tmp_path_factory.mktemp("project")
    for part in ("errors", "runs", "collectors", "analyzers", "simulators", "app"):
        (root / part).symlink_to(PROJECT / part)
    (root / "catalog/data").mkdir(parents=True)
    for file in (PROJECT / "catalog").glob("*.py"):
        (root / "catalog" / file.name).symlink_to(file)
    added = {
        "chips_gpu.json": ("chips", "H100 SXM", "Toy G9", GPU),
        "chips_tpu.json": ("chips", "TPU v6e", "TPU toyt", TPU),
        "slices.json": ("families", "TPU v6e", "TPU toyt", FAMILY),
    }
    for file in (PROJECT / "catalog/data").iterdir():
        data = json.loads(file.read_text())
        if file.name in added:
            table, like, name, own = added[file.name]
            data[table][name] = {**data[table][like], **own}
            for topology in data[table][name].get("topologies", ()):
                topology["machines"] = []  # machines are called by their chip's name
            data[table][name] |= {"xpk": None} if table == "families" else {}
        (root / "catalog/data" / file.name).write_text(json.dumps(data))
    return root


def run(project: Path, *arguments: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(project)}
    done = subprocess.run(
        [sys.executable, "-P", *arguments], cwd=project, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def chipledger(project: Path, *arguments: str) -> dict:
    return json.loads(run(project, "-m", "app.cli", "--store", str(project / "store"), *arguments, "--json"))


def test_the_command_line_tells_all_that_is_known_of_it(project):
    told = chipledger(project, "catalog", "chips", "toyt")
    assert told["name"] == "TPU toyt" and told["jax"]["device_kind"] == "TPU toyt lite"
    assert told["compiler"]["name"] == "toytc" and told["wiring"] is None
    rows = run(project, "-m", "app.cli", "catalog", "chips", "toyg").splitlines()
    assert [r for r in rows if " plane " in r and "Nvidia 99.1, 7 cores, 10 to 20 GB" in r]
    assert [r for r in rows if " wiring " in r and "toyg: 6+12 links to 2 switches" in r]


def test_a_profile_whose_planes_look_so_is_of_this_chip(project):
    space = XSpace()
    plane = PlaneBuilder(space, "/device:GPU:0").stats(**SEEN_BY_A_PLANE, memory_size=16_000_000_000)
    plane.line("Stream #1(Kernel)", [("kernel", 0, 10)])
    environment(space)
    trace = project / "h.xplane.pb"
    trace.write_bytes(space.SerializeToString())
    run_id = chipledger(project, "ingest", str(trace))["run_id"]
    (manifest,) = (project / "store/runs" / run_id).glob("run.json")
    assert json.loads(manifest.read_text())["facts"]["chip"]["value"] == "Toy G9"


def test_a_topology_of_it_is_wired_as_its_entry_says(project):
    told = chipledger(project, "topology", "toyg:8")
    assert told["chips"] == 8 and told["diameter_hops"] == 2


CODE = """
import json
from simulators import topology
from simulators.placement.build import machine
from simulators.placement.mesh import parse_mesh
from simulators.tpu_compile.topology import parse_topology

spec, axes = topology.parse("toyt:4x4"), parse_mesh("data=4,model=4")
laid = machine(spec, topology.build("toyt:4x4"), axes)
compiled = parse_topology("toyt:4x4")
wired = topology.build("toyg:8")
print(json.dumps({"kind": laid.device_kind, "name": compiled.text, "options": compiled.compiler_options(),
                  "links": len(wired.links), "switches": wired.switches}))
"""


def test_the_placement_and_the_compiler_know_it_by_their_names(project):
    told = json.loads(run(project, "-c", CODE))
    assert told["kind"] == "TPU toyt lite"
    assert (told["name"], told["options"]) == ("toytc:4x4", {"chip_config_name": "megatoy"})
    assert (told["links"], told["switches"]) == (8 * 18, 2)


def test_a_step_is_laid_over_slices_of_it(project):
    told = chipledger(project, "whatif", "placement", "--topology", "toyt:4x4", "--mesh", "data=4,model=4")
    assert told["chip"] == "TPU toyt" and told["jax"] is not None
