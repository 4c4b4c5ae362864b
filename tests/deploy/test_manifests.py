"""What the files below deploy/ say: that it fits together, and that what runs has no rights that it does not need."""

import argparse
import ipaddress
from pathlib import Path

import pytest
import yaml

from app.cli.commands import serve, worker
from app.identity.base import Role
from app.identity.settings import read
from app.operations.checking_start import _network
from tests.app.serving import PROJECT
from tests.deploy.manifests import (
    COMPOSE,
    DEPLOY,
    KUBERNETES,
    built,
    compose,
    container,
    instructions,
    kubectl,
    objects,
    of_kind,
)

UID = 10001
FOLDERS = ("base", "overlays/tls", "overlays/demo", "overlays/replicas")


def asked(command):
    """What `chipledger serve` takes of a command line; argparse ends the process for what it does not know."""
    assert command[:2] == ["chipledger", "serve"]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    serve.arguments(parser)
    return serve.asked(parser.parse_args(list(map(str, command[2:]))))


def default_of(text):
    """The value of `${NAME:-value}` where nothing is set."""
    return text.partition(":-")[2].removesuffix("}") if text.startswith("${") else text


@pytest.mark.parametrize("name", ["compose.yaml", "demo.yaml"])
def test_compose_starts_a_server_with_flags_that_there_are(name):
    told = asked(compose(name)["services"]["app"]["command"])
    assert (told.host, told.port, told.log, told.with_demo) == ("0.0.0.0", 8501, "json", name == "demo.yaml")


def test_compose_gives_the_server_no_rights_and_nothing_to_write_but_its_store():
    app = compose()["services"]["app"]
    assert app["read_only"] is True and app["user"] == str(UID) and app["cap_drop"] == ["ALL"]
    assert app["security_opt"] == ["no-new-privileges:true"] and "ports" not in app
    told = [v.partition(":")[2] for v in app["volumes"]]
    assert told == ["/data", "/etc/chipledger:ro"] and app["tmpfs"][0].startswith("/tmp:")


def test_jobs_are_left_to_a_worker_over_the_same_store_that_nobody_reaches():
    services = compose()["services"]
    app, one = services["app"], services["worker"]
    assert asked(app["command"]).no_worker and asked(compose("demo.yaml")["services"]["app"]["command"]).no_worker
    assert one["command"][:2] == ["chipledger", "worker"]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    worker.arguments(parser)
    parser.parse_args(list(map(str, one["command"][2:])))
    for name in ("image", "user", "read_only", "tmpfs", "cap_drop", "security_opt", "mem_limit"):
        assert one[name] == app[name]
    assert one["volumes"] == [v for v in app["volumes"] if v.endswith(":/data")] and "ports" not in one


def test_who_may_ask_is_settled_before_a_server_starts():
    app, demo = compose()["services"]["app"], compose("demo.yaml")["services"]["app"]["environment"]
    place = Path(app["environment"]["CHIPLEDGER_IDENTITY"])
    (folder,) = [v.partition(":")[0] for v in app["volumes"] if v.endswith(f":{place.parent}:ro")]
    known = read(COMPOSE / folder / place.name)
    assert known.oidc is None and known.proxy is None and known.roles.of("anybody", frozenset()) is Role.NOBODY
    assert demo == {"CHIPLEDGER_IDENTITY": "", "CHIPLEDGER_OPEN_TO_ALL": "1"}
    env = container(objects(KUBERNETES / "base"))["env"]
    assert [(e["name"], e["value"]) for e in env[1:3]] == [
        ("CHIPLEDGER_IDENTITY", str(place)),
        ("CHIPLEDGER_OPEN_TO_ALL", "0"),
    ]
    patches = yaml.safe_load((KUBERNETES / "overlays/demo/kustomization.yaml").read_text())["patches"]
    asked = {one["path"].partition("/env/")[2]: one["value"] for one in yaml.safe_load(patches[0]["patch"])}
    assert (asked["1/name"], asked["1/value"], asked["2/value"]) == ("CHIPLEDGER_IDENTITY", "", "1")


def test_compose_believes_the_network_of_its_own_proxy_alone():
    told = compose()
    believed = default_of(told["services"]["app"]["environment"]["FORWARDED_ALLOW_IPS"])
    (network,) = told["networks"]["inside"]["ipam"]["config"]
    assert believed == default_of(network["subnet"]) and ipaddress.ip_network(believed).is_private
    for service in told["services"].values():
        assert service["networks"] == ["inside"]


def test_every_volume_and_file_that_compose_names_is_there():
    told = compose()
    for service in told["services"].values():
        for volume in service["volumes"]:
            name = volume.partition(":")[0]
            assert (COMPOSE / name).exists() if name.startswith("./") else name in told["volumes"]
    assert (COMPOSE / told["services"]["app"]["build"] / "Dockerfile").resolve() == PROJECT / "Dockerfile"


def test_the_proxy_waits_for_the_check_that_the_image_makes_too():
    told = compose()
    assert told["services"]["proxy"]["depends_on"]["app"] == {"condition": "service_healthy"}
    (check,) = [rest for word, rest in instructions() if word == "HEALTHCHECK"]
    listed = yaml.safe_load(check[check.index("[") :])
    assert told["services"]["app"]["healthcheck"]["test"] == ["CMD", *listed]


@pytest.mark.parametrize("folder", FOLDERS)
def test_kubernetes_starts_a_server_with_flags_that_there_are(folder):
    told = asked(container(objects(KUBERNETES / folder))["args"])
    assert (told.host, told.port, told.log) == ("0.0.0.0", 8501, "json")


def test_kubernetes_gives_the_server_no_rights_and_nothing_to_write_but_its_store():
    found = objects(KUBERNETES / "base")
    pod = of_kind(found, "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] == UID
    assert pod["automountServiceAccountToken"] is False
    one = container(found)
    said = one["securityContext"]
    assert said["readOnlyRootFilesystem"] is True and said["allowPrivilegeEscalation"] is False
    assert said["capabilities"] == {"drop": ["ALL"]}
    assert [m["mountPath"] for m in one["volumeMounts"] if not m.get("readOnly")] == ["/data", "/tmp"]
    assert [m["mountPath"] for m in one["volumeMounts"] if m.get("readOnly")] == ["/etc/chipledger"]
    assert {v["name"] for v in pod["volumes"]} == {m["name"] for m in one["volumeMounts"]}
    env = {e["name"]: e.get("value") for e in one["env"]}
    assert env["CHIPLEDGER_STORE"] == "/data" and _network(env["FORWARDED_ALLOW_IPS"])


def test_kubernetes_never_has_two_servers_over_one_store():
    said = of_kind(objects(KUBERNETES / "base"), "Deployment")["spec"]
    assert said["replicas"] == 1 and said["strategy"] == {"type": "Recreate"}
    claim = of_kind(objects(KUBERNETES / "base"), "PersistentVolumeClaim")
    volumes = said["template"]["spec"]["volumes"]
    assert [v["persistentVolumeClaim"]["claimName"] for v in volumes if "persistentVolumeClaim" in v] == [
        claim["metadata"]["name"]
    ]


def test_kubernetes_reaches_the_server_through_one_named_port():
    found = objects(KUBERNETES / "overlays/tls")
    (port,) = container(found)["ports"]
    probes = [container(found)[f"{name}Probe"]["httpGet"]["port"] for name in ("startup", "liveness", "readiness")]
    service = of_kind(found, "Service")
    assert {*probes, service["spec"]["ports"][0]["targetPort"]} == {port["name"]}
    (rule,) = of_kind(found, "Ingress")["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend == {"name": service["metadata"]["name"], "port": {"name": service["spec"]["ports"][0]["name"]}}
    (opened,) = of_kind(found, "NetworkPolicy")["spec"]["ingress"]
    assert opened["ports"] == [{"port": port["name"]}]


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.skipif(kubectl() is None, reason="no kubectl here: what Kustomize makes of the folders is not seen")
def test_kustomize_builds_every_folder_and_selects_its_own_pods(folder):
    found = built(KUBERNETES / folder)
    label = {"app.kubernetes.io/name": "chipledger"}
    said = of_kind(found, "Deployment")["spec"]
    assert said["selector"]["matchLabels"] == label == of_kind(found, "Service")["spec"]["selector"]
    assert of_kind(found, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == label
    assert said["template"]["metadata"]["labels"].items() >= label.items()
    assert asked(container(found)["args"]).with_demo is (folder == "overlays/demo")
    assert ":" in container(found)["image"]


def test_no_file_holds_a_secret():
    for path in DEPLOY.rglob("*"):
        if path.suffix in (".yaml", ".conf") or path.name == "Caddyfile":
            for word in ("password", "BEGIN", "token:", "secret:"):
                assert word not in path.read_text(), path


def test_the_image_runs_as_nobody_in_particular_and_is_no_clone():
    stages = [i for i, (word, _) in enumerate(instructions()) if word == "FROM"]
    final = instructions()[stages[-1] :]
    assert ("USER", str(UID)) in final and ("VOLUME", "/data") in final
    assert [rest for word, rest in final if word == "COPY"] == ["--from=build /venv /venv"]
    (env,) = [rest for word, rest in final if word == "ENV"]
    assert ("WORKDIR", "/") in final and "PYTHONSAFEPATH=1" in env, "no code is looked for in the store"
    (command,) = [yaml.safe_load(rest) for word, rest in final if word == "CMD"]
    assert asked(command).port == 8501


def test_the_image_is_made_of_locks_with_hashes_alone():
    copied = [rest for word, rest in instructions() if word == "COPY" and ".lock" in rest]
    locks = {name for rest in copied for name in rest.split() if name.endswith(".lock")}
    said = " ".join(rest for word, rest in instructions() if word == "RUN")
    for name in locks:
        assert (PROJECT / name).is_file() and f"--require-hashes -r {name}" in said
    for install in said.split("pip install")[1:]:
        assert "--require-hashes" in install.split("&&")[0] or "--no-deps" in install.split("&&")[0]


def test_what_runs_is_locked_as_everything_is_and_without_tests_or_benches():
    def pinned(name):
        lines = (PROJECT / name).read_text().splitlines()
        return {line.split(" ")[0].partition(";")[0] for line in lines if line[:1].isalnum()}

    everything, runs = pinned("requirements.lock"), pinned("requirements-run.lock")
    assert runs <= everything and len(runs) < len(everything) / 2
    assert pinned("requirements-s3.lock") <= everything
    names = {one.partition("==")[0] for one in runs}
    assert not names & {
        "pytest",
        "hypothesis",
        "playwright",
        "basedpyright",
        "jax",
        "jaxlib",
        "xprof",
        "mkdocs",
        "ruff",
    }
    assert {"streamlit", "pyarrow", "duckdb", "numba", "prometheus-client", "mcp"} <= names
