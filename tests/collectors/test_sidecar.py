"""chipledger.json: every key, every wrong type, and advice for a misspelt one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.base import Fact
from collectors.own import sidecar
from errors import InputError
from tests.collectors.reading import source_of

EVERYTHING = {
    "name": "tuned",
    "kind": "training",
    "chip": "v5e",
    "chips": 256,
    "model": "llama2-7b",
    "precision": "bf16",
    "topology": "16x16",
    "parallelism": {"data": 16, "model": 16},
    "usd_per_chip_hour": 1.2,
    "peak_flops_per_s": 1.97e14,
    "peak_basis": "published",
    "simulated": False,
    "note": "<b>not bold</b>",
    "tags": {"team": "serving"},
}


def facts(tmp_path, content, name="chipledger.json"):
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    return list(sidecar.read(source_of(tmp_path, text, name)))


def test_every_key_becomes_a_declared_fact(tmp_path):
    assert facts(tmp_path, EVERYTHING) == [Fact(k, v, "declared") for k, v in EVERYTHING.items()]
    assert set(EVERYTHING) == set(sidecar.KEYS)


def test_a_model_may_be_its_dimensions_and_parallelism_text(tmp_path):
    content = {"model": {"layers": 32, "d_model": 4096, "glu": True, "act": "silu"}, "parallelism": "fsdp=16"}
    assert {f.name: f.value for f in facts(tmp_path, content)} == content


def test_what_is_written_down_as_not_known_is_no_fact(tmp_path):
    assert facts(tmp_path, {"chip": None, "chips": 4}) == [Fact("chips", 4, "declared")]


def test_a_misspelt_key_gets_advice(tmp_path):
    with pytest.raises(InputError, match="unknown key 'chpis'.*expected one of name, kind.*Did you mean 'chips'"):
        facts(tmp_path, {"chpis": 4})
    with pytest.raises(InputError, match="unknown key 'zzz'") as error:
        facts(tmp_path, {"zzz": 4})
    assert "Did you mean" not in str(error.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": 3},
        {"kind": "trainign"},
        {"chips": 0},
        {"chips": 2.5},
        {"chips": True},
        {"chips": 1 << 40},
        {"model": {}},
        {"model": []},
        {"model": {"layers": [1]}},
        {"parallelism": {"data": 0}},
        {"usd_per_chip_hour": -1},
        {"usd_per_chip_hour": "1.20"},
        {"peak_flops_per_s": 0},
        {"simulated": "yes"},
        {"tags": {"a": 1}},
        {"tags": ["a"]},
        {"note": "x" * 20_000},
    ],
)
def test_values_of_another_type_are_refused(tmp_path, wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))} is .*expected"):
        facts(tmp_path, wrong)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"chips": ' + "9" * 5_000 + "}", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"usd_per_chip_hour": NaN}', "usd_per_chip_hour is nan"),
        ('{"usd_per_chip_hour": 1e999}', "usd_per_chip_hour is inf"),
        ('{"chips": 4, "chips": 8}', "stands there twice"),
        (" " * 2_000_000, "longer than"),
    ],
)
def test_what_is_no_sidecar_is_refused_by_name(tmp_path, content, reason):
    with pytest.raises(InputError, match=f"run/chipledger.json: .*{reason}"):
        facts(tmp_path, content, "run/chipledger.json")


def test_a_byte_order_mark_and_broken_escapes_do_no_harm(tmp_path):
    [fact] = facts(tmp_path, b'\xef\xbb\xbf{"note": "half \\ud83d"}')
    assert fact.value == "half ?"


@pytest.mark.parametrize(
    ("name", "score"),
    [("chipledger.json", 1), ("a/b/chipledger.json", 1), ("my-chipledger.json", 0), ("chipledger.json.txt", 0)],
)
def test_sniff_goes_by_name_alone(tmp_path, name, score):
    assert sidecar.sniff(source_of(tmp_path, "{}", name)) == score


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(sidecar.KEYS)) | st.text(), json_values, max_size=4))
def test_any_object_is_facts_that_json_can_hold_or_an_input_error(tmp_path_factory, content):
    try:
        found = facts(tmp_path_factory.getbasetemp(), content)
    except InputError:
        return
    json.dumps({f.name: f.value for f in found}, allow_nan=False).encode("utf-8")
    assert {f.name for f in found} == {key for key, value in content.items() if value is not None}
