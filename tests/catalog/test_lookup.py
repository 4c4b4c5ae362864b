from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import as_rows, chip, chips, entry, families, family, model, models, slice_
from catalog.chips import index as chip_index
from catalog.lookup import Ambiguity, Index, key
from catalog.models import index as model_index
from errors import QuestionError

NAMES = sorted({*chip_index().spelled.values(), *model_index().spelled.values(), "v5p-128", "v4-8", "tpu7x-8"})


def test_key_ignores_case_space_and_punctuation_but_not_a_break_between_digits():
    assert key("TPU v5 lite") == key("tpu_v5-LITE") == "tpuv5lite"
    assert key("Llama 3.1 8B") == key("llama-3.1-8b") == key("LLAMA3_1-8B") == "llama3.1.8b"
    assert key("Qwen3-14B") != key("Qwen3.1-4B")
    assert key("v5e.") == "v5e"
    assert key("ＴＰＵ ｖ５ｅ") == "tpuv5e"  # full-width letters


@pytest.mark.parametrize(
    "name, expected",
    [
        ("TPU v5 lite", "TPU v5e"),
        ("v5e", "TPU v5e"),
        ("ct5lp", "TPU v5e"),
        ("TPU v5 lite pod", "TPU v5e"),
        ("v5litepod-16", "TPU v5e"),
        ("TPU v5 Lite", "TPU v5e"),
        ("ct5lp-hightpu-4t", "TPU v5e"),
        ("tpu-v5-lite-podslice", "TPU v5e"),
        ("TPU v5", "TPU v5p"),
        ("TPU v5p", "TPU v5p"),
        ("v5p-128", "TPU v5p"),
        ("tpu-v5p-slice", "TPU v5p"),
        ("TPU v6 lite", "TPU v6e"),
        ("TPU v6 Lite", "TPU v6e"),
        ("Trillium", "TPU v6e"),
        ("ct6e-standard-4t", "TPU v6e"),
        ("tpu7x", "TPU 7x"),
        ("TPU7x", "TPU 7x"),
        ("Ironwood", "TPU 7x"),
        ("tpu7x-standard-4t", "TPU 7x"),
        ("TPU v2", "TPU v2"),
        ("TPU v3", "TPU v3"),
        ("TPU v4", "TPU v4"),
        ("v3-32", "TPU v3"),
        ("TPU8i", "TPU 8i"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("H100", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 SXM 40GB"),
        ("Tesla V100-SXM2-32GB", "V100 SXM2 32GB"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Workstation"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Server"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD Instinct MI355X", "MI355X"),
    ],
)
def test_chips_are_found_by_what_people_and_programs_call_them(name, expected):
    assert chip(name).name == expected


@pytest.mark.parametrize(
    "name, choices",
    [
        ("v5", ["TPU v5e", "TPU v5p"]),
        ("TPU v8", ["TPU 8t", "TPU 8i"]),
        ("Tesla V100", ["16GB", "32GB"]),
        ("RTX PRO 6000", ["Workstation", "Server"]),
        ("Nvidia GPU (Hopper)", ["H100 SXM", "H100 PCIe", "H100 NVL", "H200 SXM", "H200 NVL"]),
        ("AMD GPU - gfx942", ["MI300A", "MI325X"]),
    ],
)
def test_a_name_that_fits_several_chips_is_refused_and_the_choices_are_named(name, choices):
    with pytest.raises(QuestionError) as error:
        chip(name)
    assert all(c in str(error.value) for c in choices)


@pytest.mark.parametrize(
    "name",
    ["TPU v4 lite", "v4i", "H100 CNX", "NVIDIA A800-SXM4-80GB", "MI308X", "H20 NVL", "GeForce RTX 4090 D", "L40", "v6"],
)
def test_a_chip_that_is_not_catalogued_is_never_taken_for_a_cousin(name):
    with pytest.raises(QuestionError):
        chip(name)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("llama3.1-8b", "llama3.1-8b"),
        ("meta-llama/Llama-3.1-8B", "llama3.1-8b"),
        ("Llama 3.1 8B", "llama3.1-8b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3.1-70b"),
        ("GPT OSS 120B", "gpt-oss-120b"),
        ("Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"),
        ("deepseek-ai/DeepSeek-V3", "deepseek3-671b"),
        ("Mixtral 8x7B", "mixtral-8x7b"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b-v0.1"),
    ],
)
def test_models_are_found_by_usual_names(name, expected):
    assert model(name).name == expected


@pytest.mark.parametrize(
    "find, typo, meant, listing",
    [
        (chip, "TPU v5ee", "TPU v5e", "catalog chips"),
        (chip, "trilium", "TPU v6e", "catalog chips"),
        (chip, "MI300", "MI300X", "catalog chips"),
        (model, "lama3.1-8b", "llama3.1-8b", "catalog models"),
        (model, "qwen3-235b-a22", "qwen3-235b-a22b", "catalog models"),
        (family, "tpu-v5p-slise", "TPU v5p", "catalog slices"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion_and_says_how_to_list(find, typo, meant, listing):
    with pytest.raises(QuestionError) as error:
        find(typo)
    assert f"Did you mean {meant}" in str(error.value) and listing in str(error.value)


def test_nothing_alike_still_says_how_to_list():
    with pytest.raises(QuestionError, match="catalog chips") as error:
        chip("§§§")
    assert "Did you mean" not in str(error.value)


@given(
    st.one_of(
        st.text(max_size=300),
        st.tuples(st.sampled_from(NAMES), st.text(max_size=6)).map("".join),
        st.none(),
        st.integers(),
        st.binary(max_size=5),
    )
)
def test_no_name_raises_anything_but_a_question_error(name):
    asked = [
        (chip, chips()),
        (model, models()),
        (family, families()),
        *((lambda n, k=k: entry(k, n), None) for k in ("chips", "models", "slices")),
    ]
    for find, entries in asked:
        try:
            found = find(name)
        except QuestionError as error:
            assert "\n" not in str(error) and len(str(error)) < 400
        else:
            assert entries is None or found in entries.values()
    with suppress(QuestionError):
        assert slice_(name).chips >= 1


STYLES = {
    "upper": str.upper,
    "lower": str.lower,
    "title": str.title,
    "padded": lambda s: f"  {s}. ",
    "underscores": lambda s: s.replace(" ", "_"),
    "spaces": lambda s: s.replace("-", " "),
}


@pytest.mark.parametrize("style", STYLES)
def test_every_alias_is_found_however_it_is_written(style):
    for index in (chip_index(), model_index()):
        for alias in index.spelled.values():
            assert index.find(STYLES[style](alias)) == index.find(alias)


def test_an_alias_that_leads_to_two_entries_is_a_defect():
    with pytest.raises(ValueError, match="both"):
        Index("chip", {"A": ["same"], "B": ["S a m e"]})
    with pytest.raises(ValueError, match="ambiguous"):
        Index("chip", {"A": ["same"]}, [Ambiguity(name="same", may_be=("A", "B"), why="")])
    with pytest.raises(ValueError, match="no letter"):
        Index("chip", {"A": ["--"]})


@pytest.mark.parametrize(
    "kind, name, entries",
    [
        ("chips", "v5e", chips),
        ("models", "gemma-7b", models),
        ("slices", "v5p", families),
    ],
)
def test_rows_of_one_entry_and_of_all(kind, name, entries):
    columns = {"entry", "key", "meaning", "value", "unit", "source", "mark", "note"}
    one, every = as_rows(kind, name), as_rows(kind)
    assert one and all(set(row) == columns and row["meaning"] for row in every)
    assert all(row in every for row in one)
    assert {row["entry"].split(" ct")[0].split(" tpu7x-")[0] for row in every} == set(entries())


def test_an_unknown_kind_is_refused():
    for ask in (lambda: entry("cars", "x"), lambda: as_rows("cars")):
        with pytest.raises(QuestionError, match="chips, models or slices"):
            ask()
