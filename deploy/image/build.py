"""`python deploy/image/build.py` builds the image, starts it with the bundled runs, and lets it read a log.

By Docker where it runs, else by buildah. Where the base cannot be had, debootstrap makes one of the Debian that this
machine is, about as large, to build and to try on and not to hand on. Where packages come from a mirror, the build is
told of it by secrets, which are in no layer.

Exit code 0: it was built and answers; 1: it was not, or does not; 4: nothing here builds one, and why is said.
"""

import argparse
import ast
import contextlib
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
BASE, STAND_IN, CONTAINER = "python:3.12-slim", "localhost/chipledger-base", "chipledger-tried"
OWN_PORT = 8501  # where a container has a network of its own
ASK_S, PULL_S, READY_S, LOADED_S = 60, 300, 240, 240
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # as images have it
# what images of Debian leave out of it
NEEDLESS = (*(f"usr/share/{name}" for name in ("doc", "info", "locale", "man")), "var/cache/apt", "var/lib/apt/lists")
# a log of a job, which is small
READS = """mkdir /tmp/job && for step in 1 2 3 4 5 6 7 8; do
    echo "completed step: $step, seconds: 0.500, TFLOP/s/device: 90.000, Tokens/s/device: 9000.0, loss: 3.1"
done > /tmp/job/train.log && chipledger ingest /tmp/job --name tried"""
NOT_PACKED = ("./dev/*", "./proc/*", "./sys/*")
MIRROR = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")


class CannotBuild(Exception):
    """Nothing here builds an image; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What builds images and runs them. `command`: with what each call begins."""

    command: tuple[str, ...]
    is_docker: bool

    def do(self, *arguments: str) -> None:
        """Raises CalledProcessError where it fails; what it says is shown."""
        subprocess.run([*self.command, *arguments], check=True, cwd=PROJECT)

    def said(self, *arguments: str, timeout_s: float = ASK_S) -> str | None:
        return said(*self.command, *arguments, timeout_s=timeout_s)

    def inside(self, *command: str) -> tuple[str, ...]:
        """The arguments that run a command in the container."""
        if self.is_docker:
            return "exec", CONTAINER, *command
        return "run", "--isolation", "chroot", CONTAINER, "--", *command

    def starting(self, tag: str, *command: str) -> tuple[str, ...]:
        """The arguments that start the container, and stay until it ends."""
        if self.is_docker:
            return "run", "--name", CONTAINER, "--read-only", "--tmpfs", "/tmp", tag, *command
        return self.inside(*command)


def said(*command: str, timeout_s: float = ASK_S) -> str | None:
    """What a command prints; None where it fails, is not there, or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def engine(storage: Path | None) -> Engine:
    """`storage`: where buildah keeps images, in place of where it usually does."""
    if said("docker", "info") is not None:
        return Engine(command=("docker",), is_docker=True)
    if said("buildah", "--version") is None:
        raise CannotBuild("no Docker runs here, and there is no buildah (Debian has it: apt-get install buildah)")
    apart = () if storage is None else ("--root", str(storage / "root"), "--runroot", str(storage / "run"))
    return Engine(command=("buildah", *apart), is_docker=False)


def base(by: Engine, wanted: str, folder: Path) -> str:
    """The name of the base to build on."""
    if by.said("pull", "--quiet", wanted, timeout_s=PULL_S) is not None:
        return wanted
    if by.is_docker:
        raise CannotBuild(f"{wanted} cannot be had")
    print(f"{wanted} cannot be had: a stand-in for it is made.")
    return stand_in(by, folder)


def stand_in(by: Engine, folder: Path) -> str:
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        raise CannotBuild("the base cannot be had, and a stand-in takes debootstrap and root")
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    root = folder / "base"
    command = ["debootstrap", "--variant=minbase", "--include=python3-venv", release, str(root), mirror_of(release)]
    if said(*command, timeout_s=PULL_S) is None:
        raise CannotBuild(f"debootstrap made no {release} within {PULL_S} s")
    for name in NEEDLESS:
        shutil.rmtree(root / name, ignore_errors=True)
    (root / "etc/apt/sources.list").unlink(missing_ok=True)  # of this machine
    context = folder / "context"
    context.mkdir()
    left_out = [f"--exclude={pattern}" for pattern in NOT_PACKED]
    subprocess.run(["tar", "-C", str(root), *left_out, "-cf", str(context / "base.tar"), "."], check=True)
    (context / "Dockerfile").write_text(f"FROM scratch\nADD base.tar /\nENV PATH={PATH}\nRUN python3 -m venv --help\n")
    if by.said("build", "--isolation", "chroot", "--tag", STAND_IN, str(context), timeout_s=PULL_S) is None:
        raise CannotBuild("buildah builds nothing here, not even the stand-in for the base")
    return STAND_IN


def mirror_of(release: str) -> str:
    """From where this machine has its packages."""
    told = said("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages") or ""
    mirrors = [line.split()[1] for line in told.splitlines() if line.split()[0] == release]
    if not mirrors:
        raise CannotBuild(f"apt-get knows no source of {release or 'this machine'}")
    return mirrors[0]


def pip_settings(listed: str) -> dict[str, str]:
    """Of what `pip config list` says, where packages are. What lies on this machine is not there in a build."""
    settings = {}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        name = key.removeprefix("global.").removeprefix(":env:.")
        words = str(ast.literal_eval(value)).split() if value else []
        there = [word for word in words if not word.startswith(("file:", "/")) or name == "cert"]
        if there and name in (*MIRROR, "cert"):
            settings[name] = " ".join(there)
    return settings


def secrets(folder: Path) -> Iterator[str]:
    """The arguments by which a build is told of a mirror of packages."""
    settings = pip_settings(said(sys.executable, "-m", "pip", "config", "list") or "")
    if not settings:
        return
    if certificates := settings.get("cert"):
        settings["cert"] = "/run/secrets/ca"
        yield f"--secret=id=ca,src={certificates}"
    path = folder / "pip.conf"
    path.write_text("\n".join(["[global]", *(f"{name} = {value}" for name, value in settings.items()), ""]))
    yield f"--secret=id=pip,src={path}"


def build(by: Engine, tag: str, on: str, folder: Path) -> None:
    how = () if by.is_docker else ("--isolation", "chroot", "--format", "docker")
    by.do("build", *how, "--tag", tag, "--build-arg", f"PYTHON={on}", *secrets(folder), ".")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def served(by: Engine, tag: str, log: Path) -> Iterator[int]:
    """The port of a server in a container, which is taken away afterwards."""
    port = OWN_PORT if by.is_docker else free_port()
    serve = ("chipledger", "serve", "--host", "0.0.0.0", "--port", str(port), "--with-demo")
    if not by.is_docker:
        by.do("from", "--name", CONTAINER, tag)
    arguments = by.starting(tag, "env", "CHIPLEDGER_OPEN_TO_ALL=1", *serve)
    with log.open("w") as written:
        process = subprocess.Popen(
            [*by.command, *arguments], stdout=written, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield port
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        by.said("rm", *(("--force",) if by.is_docker else ()), CONTAINER)
        process.wait(ASK_S)


def loaded(log: Path) -> bool | None:
    """Whether the server says that it loaded the bundled runs; None where it has said nothing of it yet."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if '"demo_loaded"' in line]
    return json.loads(lines[-1])["exit_code"] == 0 if lines else None


def comes(within_s: float, true: Callable[[], bool | None]) -> bool:
    """Whether it becomes true in time."""
    until = time.monotonic() + within_s
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(1)
    return True


def wrong(by: Engine, tag: str, log: Path) -> str:
    """What is wrong with the image that was built; empty where nothing is."""
    with served(by, tag, log) as port:
        ready = ("python", "-m", "app.operations.probe", str(port))
        if not comes(READY_S, lambda: by.said(*by.inside(*ready)) is not None):
            return f"it is not ready {READY_S} s after it was started"
        if not comes(LOADED_S, lambda: loaded(log)):
            return "it does not load the bundled runs"
        if by.said(*by.inside("sh", "-c", READS)) is None:
            return "it does not read a log"
    return ""


def tried(by: Engine, arguments: argparse.Namespace, folder: Path) -> int:
    on = base(by, arguments.base, folder)
    build(by, arguments.tag, on, folder)
    log = folder / "served.log"
    if why := wrong(by, arguments.tag, log):
        print(f"error: the image was built, and {why}. It said:\n{log.read_text(errors='replace')}", file=sys.stderr)
        return 1
    sizes = (by.said("images", "--format", "{{.Size}}", name) or "?" for name in (arguments.tag, on))
    print(f"The image was built, and serves ({', its base '.join(size.strip() for size in sizes)}).")
    return 0


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Builds the image and tries it.")
    parser.add_argument("--tag", default="chipledger")
    parser.add_argument("--base", default=BASE)
    parser.add_argument("--passing", action="store_true", help="keep nothing: the image is taken away again")
    arguments = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is taken away
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        folder = Path(made)
        try:
            by = engine(folder if arguments.passing else None)
            with contextlib.ExitStack() as at_the_end:
                if arguments.passing:
                    what = (arguments.tag,) if by.is_docker else ("--all",)
                    at_the_end.callback(by.said, "rmi", "--force", *what)
                return tried(by, arguments, folder)
        except CannotBuild as e:
            print(f"No image was built: {e}.")
            return 4
        except subprocess.CalledProcessError as e:
            print(f"error: {e.cmd[0]} ended with {e.returncode}: the image was not built", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
