"""Manifests: numbers that must fit together on every listed slice of every generation, and texts that parse."""

import re
from math import prod

import pytest
import yaml

from catalog.slices import families
from errors import QuestionError
from simulators.topology import parse
from simulators.topology.manifests.manifest import CAPACITIES, manifest
from simulators.topology.manifests.slurm import slurm

TOOLS = ("gke", "node_pool", "xpk", "pathways", "queued_resource")
LISTED = [
    (f"{f.name.removeprefix('TPU ')}:{t.shape}", machine)
    for f in families().values()
    for t in f.topologies
    for machine in t.machines
]
LABEL = re.compile(r"[a-z]([-a-z0-9]{0,37}[a-z0-9])?")  # a name that node pools, services and jobs all take


def created(text, **how):
    return manifest(parse(text), **how)


def documents(made):
    return list(yaml.safe_load_all(made["gke"]))


@pytest.mark.parametrize(
    "generation, machine, accelerator",
    [
        ("v4", "ct4p-hightpu-4t", "tpu-v4-podslice"),
        ("v5p", "ct5p-hightpu-4t", "tpu-v5p-slice"),
        ("7x", "tpu7x-standard-4t", "tpu7x"),
    ],
)
def test_the_job_of_2x2x4_is_four_hosts_of_four_chips(generation, machine, accelerator):
    made = created(f"{generation}:2x2x4")
    service, job = documents(made)
    assert (
        made
        | {
            "machine_type": machine,
            "hosts": 4,
            "chips_per_host": 4,
            "accelerator": accelerator,
            "topology": "2x2x4",
            "parallelism": 4,
            "chips": 16,
        }
        == made
    )
    assert job["kind"] == "Job" and job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["parallelism"] == job["spec"]["completions"] == 4
    pod = job["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": accelerator,
        "cloud.google.com/gke-tpu-topology": "2x2x4",
    }
    assert pod["containers"][0]["resources"]["limits"] == {"google.com/tpu": 4}
    assert service["spec"]["clusterIP"] == "None" and service["metadata"]["name"] == pod["subdomain"]
    assert service["spec"]["selector"]["job-name"] == job["metadata"]["name"]


@pytest.mark.parametrize("text, machine", LISTED)
def test_every_listed_slice_on_every_machine_that_builds_it(text, machine):
    made = created(text, machine=machine)
    spec = parse(text)
    chips_of_machine = int(re.search(r"-(\d)t$", machine)[1])
    assert made["chips_per_host"] == chips_of_machine and made["machine_type"] == machine
    assert made["hosts"] * chips_of_machine == spec.chips == prod(int(n) for n in made["topology"].split("x"))
    service, job = documents(made)
    pod = job["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert job["spec"]["parallelism"] == job["spec"]["completions"] == made["hosts"]
    asked = container["resources"]
    assert asked["limits"] == asked["requests"] == {"google.com/tpu": chips_of_machine}
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"] == made["topology"] == text.partition(":")[2]
    assert pod["nodeSelector"]["cloud.google.com/gke-tpu-accelerator"] in families()[spec.chip].gke_accelerators
    assert all(LABEL.fullmatch(d["metadata"]["name"]) for d in (service, job)) and LABEL.fullmatch(made["name"])
    pool = made["node_pool"]
    assert f"--machine-type={machine}" in pool and f"--num-nodes={made['hosts']}" in pool
    policy = "tpu7x" in machine and made["hosts"] > 1
    assert (f"--accelerator-topology={made['topology']}" in pool) == policy
    assert (f"--tpu-topology={made['topology']}" in pool) == (made["hosts"] > 1 and not policy)
    assert set(made["unavailable"]) | {k for k in TOOLS if k in made} == set(TOOLS)


def test_several_slices_are_a_jobset():
    made = created("v5e:16x16:slices=199")
    [jobset] = documents(made)
    [replicated] = jobset["spec"]["replicatedJobs"]
    job = replicated["template"]["spec"]
    chips = job["template"]["spec"]["containers"][0]["resources"]["limits"]["google.com/tpu"]
    assert jobset["kind"] == "JobSet" and replicated["replicas"] == 199 and job["parallelism"] == 64
    assert replicated["replicas"] * job["completions"] * chips == 50_944 == made["chips"]
    assert made["hosts"] == 12_736 and made["parallelism"] == 64 and "--num-slices=199" in made["xpk"]
    assert "seq 0 198" in made["node_pool"] and "--node-count=199" in made["queued_resource"]
    longest_pod = f"{jobset['metadata']['name']}-{replicated['name']}-198-63-abcde"
    assert len(longest_pod) <= 63


def test_eight_chips_come_as_one_host_or_two():
    for generation, other in (("v5e", "ct5lp-hightpu-8t"), ("v6e", "ct6e-standard-8t")):
        made = created(f"{generation}:2x4")
        assert made["hosts"] == 2 and [m["hosts"] for m in made["machines"]] == [2, 1]
        alone = created(f"{generation}:2x4", machine=other)
        assert (alone["hosts"], alone["chips_per_host"]) == (1, 8) and "xpk" in alone["unavailable"]


def test_capacity():
    for capacity, flag, label, value in (
        ("spot", "--spot", "gke-spot", "true"),
        ("reserved", "--reservation=RESERVATION", "reservation-name", "RESERVATION"),
    ):
        made = created("v6e:4x4", capacity=capacity)
        selector = documents(made)[1]["spec"]["template"]["spec"]["nodeSelector"]
        assert selector[f"cloud.google.com/{label}"] == value
        assert all(flag in made[tool] for tool in ("node_pool", "xpk"))
    plain = created("v6e:4x4")
    assert "spot" not in plain["gke"] + plain["node_pool"] and "--on-demand" in plain["xpk"]
    with pytest.raises(QuestionError, match="on-demand or spot or reserved"):
        created("v6e:4x4", capacity="free")
    with pytest.raises(QuestionError, match="ct6e-standard-4t"):
        created("v6e:4x4", machine="ct5p-hightpu-4t")
    assert set(CAPACITIES) == {"on-demand", "spot", "reserved", "flex-start"}


def test_flex_start_waits_for_all_hosts_at_once_on_every_tool():
    made = created("v6e:4x4", capacity="flex-start")
    selector = documents(made)[1]["spec"]["template"]["spec"]["nodeSelector"]
    assert selector["cloud.google.com/gke-flex-start"] == "true"
    assert "--flex-start" in made["node_pool"] and "--num-nodes=0" in made["node_pool"]
    assert f"--max-nodes={made['hosts']}" in made["node_pool"] and "--flex" in made["xpk"].split()
    assert "--provisioning-model=flex-start" in made["queued_resource"]
    job = yaml.safe_load(made["pathways"])
    assert job["spec"]["workers"][0]["nodeSelector"] == {"cloud.google.com/gke-flex-start": "true"}


@pytest.mark.parametrize("text", ["v5p:4x4x8", "v6e:16x16:slices=4", "7x:4x4x4"])
def test_a_pathways_job_asks_for_the_same_slices(text):
    made, spec = created(text), parse(text)
    job = yaml.safe_load(made["pathways"])
    [worker] = job["spec"]["workers"]
    assert job["kind"] == "PathwaysJob" and LABEL.fullmatch(job["metadata"]["name"])
    assert (worker["type"], worker["topology"]) == (made["machine_type"], made["topology"])
    assert worker["numSlices"] * prod(int(n) for n in worker["topology"].split("x")) == spec.chips
    assert job["spec"]["controller"]["template"]["spec"]["containers"][0]["name"] == "main"


@pytest.mark.parametrize(("chips", "nodes", "gpus"), [(1024, 128, 8), (8, 1, 8), (4, 1, 4)])
def test_a_slurm_script_asks_for_whole_nodes(chips, nodes, gpus):
    lines = slurm("job", chips, 8).splitlines()
    given = dict(
        line.removeprefix("#SBATCH --").split("=", 1) for line in lines if line.startswith("#SBATCH --") and "=" in line
    )
    assert (int(given["nodes"]), int(given["gpus-per-node"]), given["ntasks-per-node"]) == (nodes, gpus, "1")
    assert int(given["nodes"]) * int(given["gpus-per-node"]) == chips
    assert f"--nproc-per-node={gpus}" in "".join(lines)


@pytest.mark.parametrize(
    "text, flags",
    [
        ("v5p:4x4x8", "--type=v5p --topology=4x4x8_untwisted"),
        ("v5p:4x4x8:twisted", "--type=v5p --topology=4x4x8"),
        ("v4:8x8x8", "--type=v4 --topology=8x8x8"),
        ("v5p:2x2x4", "--type=v5p --topology=2x2x4"),
        ("v5e:4x4", "--accelerator-type=v5litepod-16"),
        ("v6e:16x16", "--accelerator-type=v6e-256"),
        ("v3:4x4", "--accelerator-type=v3-32"),
        ("v2:2x2", "--accelerator-type=v2-8"),
    ],
)
def test_queued_resources_name_the_slice_exactly(text, flags):
    written = created(text)["queued_resource"].replace("\\\n", " ").split()
    named = [w for w in written if w.startswith(("--type", "--topology", "--accelerator"))]
    assert " ".join(named) == flags


def test_xpk_is_only_asked_for_what_it_lists():
    assert "--tpu-type=tpu7x-4x4x8" in created("7x:4x4x8")["xpk"]
    assert "of 256 chips it has 4x8x8" in created("v5p:4x4x16")["unavailable"]["xpk"]
    assert "xpk" in created("v3:4x4")["unavailable"] and "xpk" in created("v5e:2x2")["unavailable"]


def test_a_pool_above_the_largest_slice_is_warned_of():
    assert any("expect this to be refused" in n for n in created("v5p:16x20x28")["notes"])
    assert not any("refused" in n for n in created("v5p:16x16x24")["notes"])


@pytest.mark.parametrize(
    "text, why, nearest",
    [
        ("torus:8x8x16", "no machine in particular", "7x:8x8x16"),
        ("mesh:2x2x4", "no machine", "7x:2x2x4"),
        ("torus:4x4x8:twisted", "no machine", "v5p:4x4x8:twisted"),
        ("boardfly:1024", "not published", "7x:8x8x16"),
        ("8t:4x8x8", "no machine type of it is published", "7x:4x8x8"),
        ("v5p:1", "smallest slice is v5p:2x2x1", "v5p:2x2x1"),
        ("nvl:72", "is a GPU", "v5p:4x4x4"),
    ],
)
def test_what_nobody_offers_has_a_reason_and_the_nearest_that_somebody_does(text, why, nearest):
    made = created(text)
    assert set(made) == {"reason", "nearest"} and why in made["reason"] and nearest in made["nearest"]
    assert all(created(n)["machine_type"] for n in made["nearest"])


def test_what_is_offered_without_machines_or_without_several_slices():
    v2 = created("v2:4x4")
    assert (
        v2["machine_type"] is None
        and v2["hosts"] == 4
        and set(v2["unavailable"])
        == {
            "gke",
            "node_pool",
            "xpk",
            "pathways",
        }
    )
    assert "more than one host" in created("v5e:2x2:slices=2")["unavailable"]["gke"]
    assert "TPU v3" in created("v3:4x4:slices=2")["unavailable"]["gke"]
    assert "queued_resource" in created("7x:4x4x4")["unavailable"]
