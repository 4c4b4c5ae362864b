"""Settings that logs print: every form of them, and nothing of what stands beside."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.ingest import ingest
from collectors.reading import settings as reading
from collectors.reading.settings import told_by
from collectors.training import job_log, maxtext
from runs.store import Store
from runs.tables import frame
from tests.collectors.reading import read, source_of

SECRET = "hunter2-do-not-keep"
FORMS = {
    "NCCL_DEBUG=TRACE": [("NCCL_DEBUG", "TRACE")],
    "export NCCL_DEBUG=TRACE": [("NCCL_DEBUG", "TRACE")],
    'declare -x NCCL_DEBUG="TRACE"': [("NCCL_DEBUG", "TRACE")],
    "setenv NCCL_DEBUG TRACE": [("NCCL_DEBUG", "TRACE")],
    "+ export NCCL_DEBUG=TRACE": [("NCCL_DEBUG", "TRACE")],
    "++ NCCL_DEBUG=TRACE": [("NCCL_DEBUG", "TRACE")],
    "+ export 'XLA_FLAGS=--xla_a=1 --xla_gpu_autotune_level=0'": [("xla_gpu_autotune_level", "0")],
    "LIBTPU_INIT_ARGS=--xla_hlo_profile --xla_dump_to=/tmp/x": [("xla_hlo_profile", "true"), ("xla_dump_to", "(set)")],
    "XLA_FLAGS=--xla_a=1": [("", "")],
    "gpu-3:18:18 [6] NCCL INFO NCCL_IB_DISABLE set by environment to 1.": [("NCCL_IB_DISABLE", "1")],
    "[2024-08-15 08:00:33,840] [INFO] [launch.py:139:main] 0 NCCL_IB_DISABLE=1": [("NCCL_IB_DISABLE", "1")],
    "I1128 15:44:41.080908    7450 launcher.py:61] JAX_DEBUG_NANS=True": [("JAX_DEBUG_NANS", "True")],
    "      NCCL_DEBUG:   TRACE": [("NCCL_DEBUG", "TRACE")],
    "[pod/w-3/train] NCCL_DEBUG=TRACE": [("NCCL_DEBUG", "TRACE")],
    "2026-03-04T05:06:07.1Z NCCL_DEBUG=TRACE": [("NCCL_DEBUG", "TRACE")],
    "environ({'KEY': 'x', 'NCCL_DEBUG': 'TRACE', 'XLA_FLAGS': \"--xla_gpu_autotune_level=0\"})": [
        ("NCCL_DEBUG", "TRACE"),
        ("xla_gpu_autotune_level", "0"),
    ],
    'runtime_env={"env_vars": {"NCCL_DEBUG": "TRACE"}}': [("NCCL_DEBUG", "TRACE")],
    "INFO 11-03 05:51:44 [utils.py:233] non-default args: {'enforce_eager': True}": [("enforce_eager", "True")],
    "INFO 11-03 05:51:44 Initializing a V1 LLM engine (v0.10.1) with config: model='m', enforce_eager=False, x=1": [
        ("enforce_eager", "False")
    ],
    "WARNING 04-21 12:32:11 [vllm.py:848] Enforce eager set, disabling torch.compile": [("enforce_eager", "True")],
    "[2026-06-24 23:04:51] server_args=ServerArgs(disable_cuda_graph=True, disable_cuda_graph_padding=False)": [
        ("disable_cuda_graph", "True")
    ],
    "  deterministic_mode .............................. True": [("deterministic_mode", "True")],
    "+ vllm serve m --enforce-eager --port 1": [("enforce_eager", "True")],
}
PROSE = (
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "CUDA_LAUNCH_BLOCKING=1 tells which kernel failed",
    "# export NCCL_DEBUG=TRACE",
    "MY_NCCL_DEBUG=TRACE",
    "NCCL_DEBUG_SUBSYS=ALL",
    "run with NCCL_DEBUG=TRACE for more",
    "      NCCL_DEBUG:  <set to the key 'x' in secret 'y'>  Optional: false",
    "set 'enforce_eager=True' or use '--enforce-eager' in the CLI",
)


@pytest.mark.parametrize(("line", "told"), FORMS.items(), ids=range(len(FORMS)))
def test_each_form_is_read(line, told):
    assert [(one.name, one.value) for one in told_by(line)] == told


@pytest.mark.parametrize("line", PROSE)
def test_what_only_speaks_of_a_setting_tells_of_none(line):
    assert told_by(line) == []


def test_a_manifest_tells_in_two_lines():
    assert [tuple(one)[:2] for one in told_by("  - name: NCCL_DEBUG", '    value: "TRACE"')] == [
        ("NCCL_DEBUG", "TRACE")
    ]
    assert told_by("  - name: NCCL_DEBUG", "    valueFrom:") == []


def rows(folder, text, name="launch.log", collector=job_log):
    got = read(collector, source_of(folder, text, name))
    return [(r["host"], r["name"], r["value"], r["line"]) for r in got.rows.get("settings", [])]


def test_a_log_that_holds_nothing_but_an_environment_is_read(tmp_path):
    text = "HOME=/root\nXLA_FLAGS=--xla_backend_optimization_level=0\nNCCL_DEBUG=INFO\n"
    assert job_log.sniff(source_of(tmp_path, text, "env.txt")) == 0.5
    assert job_log.sniff(source_of(tmp_path, "HOME=/root\nA=b\n", "env.txt")) == 0.0
    assert rows(tmp_path, text) == [
        (None, "xla_backend_optimization_level", "0", 2),
        (None, "NCCL_DEBUG", "INFO", 3),
    ]


def test_what_a_thousand_ranks_print_alike_is_told_once(tmp_path):
    text = "NCCL_DEBUG=TRACE\nXLA_FLAGS=--xla_hlo_profile\n" * 1000
    assert rows(tmp_path, text) == [(None, "NCCL_DEBUG", "TRACE", 1), (None, "xla_hlo_profile", "true", 2)]


def test_hosts_are_told_apart_and_no_more_than_so_many(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST", 20)
    text = "".join(f"node-{n}:1:1 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n" for n in range(25))
    got = read(job_log, source_of(tmp_path, text, "nccl.log"))
    assert len(got.rows["settings"]) == 20
    assert got.rows["settings"][7]["host"] == "node-7"
    assert "of one input 20 are kept" in got.reasons()


def test_a_value_that_changes_and_a_flag_that_is_left_out_are_told(tmp_path):
    text = "NCCL_DEBUG=INFO\nXLA_FLAGS=--xla_hlo_profile --b\nNCCL_DEBUG=TRACE\nXLA_FLAGS=--b\nXLA_FLAGS=--b\n"
    assert rows(tmp_path, text) == [
        (None, "NCCL_DEBUG", "INFO", 1),
        (None, "xla_hlo_profile", "true", 2),
        (None, "NCCL_DEBUG", "TRACE", 3),
        (None, "xla_hlo_profile", "", 4),
    ]


def test_a_training_log_says_which_stood_before_its_steps(tmp_path):
    step = "completed step: {}, seconds: 2.000, loss: 1.500\n"
    text = "NCCL_DEBUG=TRACE\n" + step.format(1) + "NCCL_DEBUG=INFO\n"
    got = read(maxtext, source_of(tmp_path, text, "train.log"))
    assert [(r["value"], r["step"]) for r in got.rows["settings"]] == [("TRACE", None), ("INFO", 1)]


@pytest.mark.parametrize(
    "value",
    ["--xla_pad=" + "x" * 3000 + " --xla_hlo_profile", "'--a=\"b\"' --xla_hlo_profile"],
    ids=["past what causes are looked for in", "quotes"],
)
def test_long_lists_of_flags_are_read_to_their_end(tmp_path, value):
    found = rows(tmp_path, f"XLA_FLAGS={value}\nNVRM: Xid (PCI:0000:c6:00): 79, GPU has fallen off the bus.\n")
    assert found == ([(None, "xla_hlo_profile", "true", 1)] if "pad" in value else [])


def test_a_megabyte_of_a_value_is_no_matter(tmp_path):
    text = f"NCCL_DEBUG={'y' * (1 << 20)}\nPYTHONDEVMODE=<img src=x>\nXLA_FLAGS={'--z ' * (1 << 18)}\n"
    assert rows(tmp_path, text) == [(None, "NCCL_DEBUG", "(set)", 1)]


def test_an_export_has_no_lines_to_name(tmp_path):
    said = ("NCCL_DEBUG=TRACE", "completed step: 1, seconds: 2.000, loss: 1.500")
    entries = [{"timestamp": f"2026-03-04T05:06:0{n}Z", "textPayload": text} for n, text in enumerate(said)]
    (tmp_path / "export.json").write_text(json.dumps(entries))
    store = Store(tmp_path / "store")
    run = store.get(ingest([tmp_path / "export.json"], store).run_id)
    told = frame(run.tables, "settings", None)
    assert told["value"].tolist() == ["TRACE"]
    assert told["line"].isna().all()


def test_secrets_beside_them_are_nowhere_in_the_store(tmp_path):
    text = (
        f"HF_TOKEN={SECRET}\nNCCL_DEBUG=TRACE\nexport AWS_SECRET_ACCESS_KEY={SECRET}\n"
        f"NCCL_IB_DISABLE={SECRET}{SECRET}\n"
        f"XLA_FLAGS=--xla_dump_to=s3://{SECRET}@bucket/x --password={SECRET}\n"
        f"environ({{'TOKEN': '{SECRET}', 'NCCL_DEBUG': 'INFO', 'XLA_FLAGS': '--{SECRET}'}})\n"
        f"+ curl -H 'Authorization: {SECRET}' --enforce-eager\n"
        f"non-default args: {{'api_key': '{SECRET}', 'enforce_eager': True}}\n"
    )
    (tmp_path / "launch.log").write_text(text)
    store = Store(tmp_path / "store")
    run = store.get(ingest([tmp_path / "launch.log"], store).run_id)
    assert run.manifest.tables.keys() >= {"settings"}
    for name in run.manifest.tables:
        assert SECRET not in frame(run.tables, name, None).to_csv()
    for path in store.root.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes()


@given(
    st.lists(
        st.sampled_from(["NCCL_DEBUG", "=", "TRACE", "'", '"', ": ", "XLA_FLAGS", "--", "+ ", "\x00", "[", "\ud800"])
    )
)
def test_no_line_breaks_it(parts):
    for one in told_by("".join(parts)):
        assert len(one.value) <= 24
