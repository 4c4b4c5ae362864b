"""The files below deploy/, as they are read."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import yaml

from tests.app.serving import PROJECT

DEPLOY = PROJECT / "deploy"
COMPOSE = DEPLOY / "compose"
KUBERNETES = DEPLOY / "kubernetes"


def compose(name: str = "compose.yaml") -> dict:
    return yaml.safe_load((COMPOSE / name).read_text())


def instructions(path: Path = PROJECT / "Dockerfile") -> list[tuple[str, str]]:
    """(word, rest) of each instruction of a Dockerfile, its lines joined, without comments."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(word, " ".join(rest.split())) for word, _, rest in (line.partition(" ") for line in joined) if word]


@cache
def kubectl() -> str | None:
    """A kubectl that can build with Kustomize, if there is one."""
    path = shutil.which("kubectl")
    if path is None:
        return None
    able = subprocess.run([path, "kustomize", "--help"], capture_output=True, timeout=60)
    return path if able.returncode == 0 else None


def objects(folder: Path) -> list[dict]:
    """What is written in the files that a kustomization names, before patches."""
    told = yaml.safe_load((folder / "kustomization.yaml").read_text())
    found = []
    for name in told["resources"]:
        path = folder / name
        found += objects(path) if path.is_dir() else [o for o in yaml.safe_load_all(path.read_text()) if o]
    return found


def built(folder: Path) -> list[dict]:
    """What Kustomize makes of a folder."""
    made = subprocess.run([kubectl(), "kustomize", str(folder)], capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    return [o for o in yaml.safe_load_all(made.stdout) if o]


def of_kind(found: list[dict], kind: str) -> dict:
    (one,) = [o for o in found if o["kind"] == kind]
    return one


def container(found: list[dict]) -> dict:
    (one,) = of_kind(found, "Deployment")["spec"]["template"]["spec"]["containers"]
    return one
