"""The Job and the array of `docs/recipes/buckets.md`, run as Kubernetes and Slurm run them, over a server that speaks
S3."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from runs.objects.store import ObjectStore
from tests.app.serving import PROJECT, free_port
from tests.collectors.ingesting import LOG
from tests.runs.objects.conftest import made

TITLED = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
FILES = dict(TITLED.findall((PROJECT / "docs/recipes/buckets.md").read_text(encoding="utf-8")))

pytestmark = pytest.mark.slow


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """(environment of a task, the store's address): the two runs of the recipe lie in the bucket."""
    place = made("s3", tmp_path, monkeypatch)
    there = place.objects()
    for n in (1, 2):
        there.create(f"jobs/night-{n}/logs/train.log", LOG.replace("1.0", f"1.{n}").encode())
    command = tmp_path / "bin" / "chipledger"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={PROJECT} exec {sys.executable} -m app.cli "$@"\n')
    command.chmod(0o755)
    (tmp_path / "scratch").mkdir()
    for name, module in (("dask", "-m dask"), ("python3", "")):
        program = command.parent / name
        program.write_text(f'#!/bin/sh\nPYTHONPATH={PROJECT} exec {sys.executable} {module} "$@"\n')
        program.chmod(0o755)
    path = f"{command.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "TMPDIR": str(tmp_path / "scratch")}, f"{place.url}/jobs", f"{place.url}/store"


def runs_of(url: str, folder: Path) -> list[tuple[str, int]]:
    store = ObjectStore(url, folder / "reader")
    return sorted((r.manifest.name, r.tables.rows("steps")) for r in store.runs())


def run(script: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["/bin/sh", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_job_on_kubernetes_stores_each_run_of_its_list(jobs, tmp_path):
    environment, below, store = jobs
    settings, job = yaml.safe_load_all(FILES["ingest-job.yaml"])
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/runs.txt").write_text(settings["data"]["runs.txt"].replace("s3://company-jobs", below))
    spec = job["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["completionMode"] == "Indexed" and container["command"] == ["/bin/sh", "-ec"]
    assert spec["completions"] == len(settings["data"]["runs.txt"].split())
    mounted = {v["name"]: v["mountPath"] for v in container["volumeMounts"]}
    given = {e["name"]: e["value"] for e in container["env"]}
    assert given.pop("CHIPLEDGER_STORE").startswith("s3://") and given["CHIPLEDGER_CACHE"] == mounted["scratch"]
    (script,) = container["args"]
    listed = f"{mounted['runs']}/runs.txt"
    assert listed in script
    script = script.replace(listed, str(tmp_path / "runs/runs.txt"))
    for index in range(spec["completions"]):
        task = {"JOB_COMPLETION_INDEX": str(index), "CHIPLEDGER_STORE": store}
        run(script, tmp_path, environment | task | {"CHIPLEDGER_CACHE": str(tmp_path / f"scratch-{index}")})
    assert runs_of(store, tmp_path) == [("night-1", 10), ("night-2", 10)]


def test_the_array_under_slurm_stores_each_run_of_its_list(jobs, tmp_path):
    environment, below, store = jobs
    (tmp_path / "runs.txt").write_text(FILES["runs.txt"].replace("s3://company-jobs", below))
    first, last = map(int, re.search(r"--array=(\d+)-(\d+)", FILES["ingest.sbatch"]).groups())
    assert (first, last) == (0, len(FILES["runs.txt"].split()) - 1)
    task = environment | {"STORE": store}
    told = [
        run(FILES["ingest.sbatch"], tmp_path, task | {"SLURM_ARRAY_TASK_ID": str(n)}) for n in (*range(last + 1), 0)
    ]
    assert told[-1].startswith("Already stored")  # a task that is begun again
    assert runs_of(store, tmp_path) == [("night-1", 10), ("night-2", 10)]


@contextlib.contextmanager
def beside(script: str, folder: Path, environment: dict[str, str]):
    """Another task of the job. It ends by itself, and well, once the first is done."""
    task = subprocess.Popen(["/bin/sh", "-ec", script], cwd=folder, env=environment, start_new_session=True)
    try:
        yield
        assert task.wait(60) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(task.pid, signal.SIGKILL)
        task.wait()


def test_a_job_of_several_pods_reads_one_run_together(jobs, tmp_path):
    environment, below, store = jobs
    service, policy, job = yaml.safe_load_all(FILES["ingest-many.yaml"])
    name, spec = job["metadata"]["name"], job["spec"]
    label = {"job-name": name}  # which Kubernetes gives the pods of a job
    assert service["spec"]["selector"] == label and service["spec"]["clusterIP"] == "None"
    assert policy["spec"]["podSelector"]["matchLabels"] == label
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": label}}]}]
    assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
    pod = spec["template"]["spec"]
    assert pod["subdomain"] == service["metadata"]["name"] and pod["restartPolicy"] == "Never"
    (container,) = pod["containers"]
    given = {e["name"]: e["value"] for e in container["env"]}
    (port,) = service["spec"]["ports"]
    assert given["SCHEDULER"] == f"tcp://{name}-0.{pod['subdomain']}:{port['port']}"
    mounted = {v["mountPath"] for v in container["volumeMounts"]}
    assert {given["TMPDIR"], given["CHIPLEDGER_CACHE"]} == mounted and given["CHIPLEDGER_STORE"].startswith("s3://")
    (script,) = container["args"]
    free = str(free_port())
    assert script.count(f"--port {port['port']}") == 1
    script = script.replace(f"--port {port['port']}", f"--host 127.0.0.1 --port {free}")
    task = environment | {"RUN": f"{below}/night-1", "SCHEDULER": f"tcp://127.0.0.1:{free}", "CHIPLEDGER_STORE": store}
    task |= {"CHIPLEDGER_CACHE": str(tmp_path / "scratch-0")}
    with beside(script, tmp_path, task | {"JOB_COMPLETION_INDEX": "1"}):
        run(script, tmp_path, task | {"JOB_COMPLETION_INDEX": "0"})
    assert runs_of(store, tmp_path) == [("night-1", 10)]


def test_an_array_under_slurm_reads_one_run_together(jobs, tmp_path):
    environment, below, store = jobs
    script = FILES["ingest-many.sbatch"].replace("--port 0", "--host 127.0.0.1 --port 0")
    assert script != FILES["ingest-many.sbatch"]
    task = environment | {"RUN": f"{below}/night-1", "STORE": store, "SLURM_ARRAY_JOB_ID": "7"}
    with beside(script, tmp_path, task | {"SLURM_ARRAY_TASK_ID": "1"}):
        run(script, tmp_path, task | {"SLURM_ARRAY_TASK_ID": "0"})
    assert runs_of(store, tmp_path) == [("night-1", 10)] and not list(tmp_path.glob("ingest-many-*.json"))
