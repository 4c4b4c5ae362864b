"""What builds the image and tries it, with stand-ins for the engines."""

import importlib.util
import sys
import tarfile

import pytest

from tests.deploy.manifests import DEPLOY

_SPEC = importlib.util.spec_from_file_location("build", DEPLOY / "image" / "build.py")
build = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = build  # as its data classes ask
_SPEC.loader.exec_module(build)

ENGINE = """#!/bin/sh
echo "$0 $*" >> {folder}/calls
case "$*" in
    info) exit {runs} ;;
    *--version) exit {there} ;;
    *pull*) exit {base} ;;
    *serve*) echo '{{"event": "demo_loaded", "exit_code": {loads}}}'; exec sleep 60 ;;
    *images*) echo "700 MB" ;;
    *"{fails}"*) exit 1 ;;
esac
for word in "$@"; do
    case "$word" in
        --secret=id=pip,*) cp "${{word#*src=}}" {folder}/pip.conf ;;
        */context) cp "$word/base.tar" {folder} ;;
    esac
done
"""
DEBOOTSTRAP = """#!/bin/sh
mkdir -p "$4/usr/share/doc/a" "$4/etc" && echo "$3 $5" > "$4/etc/made"
"""
APT = """#!/bin/sh
echo "bookworm-security http://first.example/debian"
echo "bookworm http://mirror.example/debian"
"""
PIP = """#!/bin/sh
echo "global.index-url='https://packages.example/simple'"
echo "global.cert='/etc/ours.crt'"
echo ":env:.find-links='/opt/wheels'"
"""


class Tools:
    """Programs that write down how they were called, and what was left by them."""

    def __init__(self, folder):
        self.folder = folder

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o700)
        return str(path)

    def engine(self, name, **codes):
        self.program(name, ENGINE.format(folder=self.folder, **{**WELL, **codes}))

    def calls(self):
        path = self.folder / "calls"
        return path.read_text().replace(f"{self.folder}/", "").splitlines() if path.exists() else []


WELL = {"runs": 0, "there": 0, "base": 0, "loads": 0, "fails": "that"}


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Neither engine; each test has what it takes."""
    made = Tools(tmp_path)
    made.engine("docker", runs=1)
    made.engine("buildah", there=1)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(build.sys, "executable", made.program("pip", PIP))
    monkeypatch.setattr(build.time, "sleep", lambda _: None)
    monkeypatch.setattr(build.os, "geteuid", lambda: 0)
    monkeypatch.setattr(build.platform, "freedesktop_os_release", lambda: {"VERSION_CODENAME": "bookworm"})
    monkeypatch.setattr(build.signal, "signal", lambda *_: None)
    return made


def test_where_nothing_builds_one_that_is_said(tools, capsys):
    assert build.main([]) == 4
    assert "No image was built: no Docker runs here, and there is no buildah" in capsys.readouterr().out


def test_docker_builds_on_the_base_that_is_asked_for(tools, capsys):
    tools.engine("docker")
    assert build.main(["--tag", "ours:1", "--base", "python:3.13-slim"]) == 0
    (built,) = [call for call in tools.calls() if call.startswith("docker build")]
    assert built.startswith("docker build --tag ours:1 --build-arg PYTHON=python:3.13-slim --secret")
    (served,) = [call for call in tools.calls() if "serve" in call]
    assert "--read-only" in served and "--port 8501 --with-demo" in served
    assert [call for call in tools.calls() if "app.operations.probe 8501" in call]
    assert tools.calls()[-3].startswith("docker rm --force"), "what was started is taken away"
    assert "The image was built, and serves (700 MB, its base 700 MB)" in capsys.readouterr().out


def test_docker_without_a_base_builds_nothing(tools, capsys):
    tools.engine("docker", base=1)
    assert build.main([]) == 4 and "python:3.12-slim cannot be had" in capsys.readouterr().out
    assert not [call for call in tools.calls() if " build " in call]


def test_buildah_builds_on_a_stand_in_that_is_as_small_as_images_are(tools, capsys):
    tools.engine("buildah", base=1)
    tools.program("debootstrap", DEBOOTSTRAP)
    tools.program("apt-get", APT)
    assert build.main(["--passing"]) == 0
    stand_in, built = [call for call in tools.calls() if " build " in call]
    assert stand_in.endswith("/context") and "PYTHON=localhost/chipledger-base" in built
    with tarfile.open(tools.folder / "base.tar") as packed:
        assert packed.extractfile("./etc/made").read() == b"bookworm http://mirror.example/debian\n"
        assert not [name for name in packed.getnames() if "doc" in name]
    assert "rmi --force --all" in tools.calls()[-1] and "--root" in tools.calls()[-1]


def test_without_debootstrap_there_is_no_stand_in(tools, capsys):
    tools.engine("buildah", base=1)
    assert build.main([]) == 4 and "a stand-in takes debootstrap and root" in capsys.readouterr().out


def test_a_machine_on_which_buildah_builds_nothing_is_no_failure_of_the_image(tools, capsys):
    tools.engine("buildah", base=1, fails="/context")
    tools.program("debootstrap", DEBOOTSTRAP)
    tools.program("apt-get", APT)
    assert build.main([]) == 4 and "buildah builds nothing here" in capsys.readouterr().out


def test_a_mirror_of_packages_is_told_by_secrets_alone(tools):
    tools.engine("docker")
    assert build.main([]) == 0
    told = (tools.folder / "pip.conf").read_text().splitlines()
    assert told == ["[global]", "index-url = https://packages.example/simple", "cert = /run/secrets/ca"]
    assert not [call for call in tools.calls() if "packages.example" in call]
    assert [call for call in tools.calls() if "--secret=id=ca,src=/etc/ours.crt" in call]


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ({"fails": "build --tag"}, "docker ended with 1: the image was not built"),
        ({"loads": 1}, 'it does not load the bundled runs. It said:\n{"event": "demo_loaded", "exit_code": 1}'),
        ({"fails": "app.operations.probe"}, "it is not ready"),
        ({"fails": "chipledger ingest"}, "it does not read a log"),
    ],
)
def test_an_image_that_does_not_serve_is_a_failure(tools, capsys, monkeypatch, codes, said):
    monkeypatch.setattr(build, "READY_S", 0)
    monkeypatch.setattr(build, "LOADED_S", 0.2)
    tools.engine("docker", **codes)
    assert build.main([]) == 1
    assert said in capsys.readouterr().err


def test_what_lies_on_this_machine_is_not_asked_for_in_a_build():
    listed = (
        "global.extra-index-url='file:///srv/wheels https://more.example'\nglobal.timeout='60'\nglobal.no-color='1'"
    )
    assert build.pip_settings(listed) == {"extra-index-url": "https://more.example", "timeout": "60"}
    assert build.pip_settings("") == {}
