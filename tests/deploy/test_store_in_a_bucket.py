"""What compose says of a store in a bucket, done as it says against a server that speaks S3."""

import os
import subprocess
import sys

import pytest

from app.workspace import workspace
from tests.app import made_runs
from tests.app.serving import environment
from tests.deploy.manifests import compose
from tests.runs.objects.servers import s3_server

SECRET = "/run/bucket/credentials"


@pytest.fixture
def said(tmp_path):
    """The environment that app and worker have, but for where their storage and their files are."""
    server = s3_server()
    if isinstance(server, str):
        pytest.skip(server)
    told = compose("bucket.yaml")["services"]["app"]["environment"]
    credentials = tmp_path / "credentials"
    credentials.write_text("[default]\naws_access_key_id = key\naws_secret_access_key = word\n")
    assert told["AWS_SHARED_CREDENTIALS_FILE"] == SECRET
    return told | {
        "AWS_ENDPOINT_URL": server.environment["AWS_ENDPOINT_URL"],
        "AWS_SHARED_CREDENTIALS_FILE": str(credentials),
        "AWS_CONFIG_FILE": os.devnull,
        "CHIPLEDGER_CACHE": str(tmp_path / "data"),
    }


def test_the_bucket_is_made_once_and_the_store_lies_there(said, monkeypatch):
    command = compose("bucket.yaml")["services"]["bucket-made"]["command"]
    for _ in range(2):  # a second start finds it there
        made = subprocess.run(
            [sys.executable, *command[1:]], env=environment(**said), capture_output=True, text=True, timeout=120
        )
        assert made.returncode == 0, made.stderr
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    run = made_runs.interrupted(workspace().store)
    monkeypatch.setenv("CHIPLEDGER_CACHE", said["CHIPLEDGER_CACHE"] + "-of-another")
    assert [one.run_id for one in workspace().store.runs()] == [run.run_id]


def test_who_reads_and_who_serves_have_one_store_one_folder_and_what_it_takes():
    told, base = compose("bucket.yaml"), compose()
    services = told["services"]
    for name in ("app", "worker", "bucket-made"):
        assert services[name]["environment"] == services["app"]["environment"]
        assert services[name]["volumes"] == [f"./bucket/credentials:{SECRET}:ro"]
        assert services[name]["build"]["args"] == {"S3": "yes"}
    for name in ("app", "worker"):
        assert f"store:{services[name]['environment']['CHIPLEDGER_CACHE']}" in base["services"][name]["volumes"]
        assert services[name]["depends_on"]["bucket-made"] == {"condition": "service_completed_successfully"}
    assert services["worker"]["depends_on"]["app"] == base["services"]["worker"]["depends_on"]["app"]
    bucket, asked = services["bucket"], services["app"]["environment"]
    assert asked["AWS_ENDPOINT_URL"] == "http://bucket" + bucket["environment"]["RUSTFS_ADDRESS"]
    assert "ports" not in bucket and bucket["networks"] == ["inside"] and bucket["volumes"] == ["bucket:/data"]
    assert "bucket" in told["volumes"] and "AWS_SECRET_ACCESS_KEY" not in asked
