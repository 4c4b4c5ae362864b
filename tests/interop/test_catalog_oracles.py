"""The catalogue against numbers that were collected or computed without it."""

import csv
from pathlib import Path

import pytest

from catalog import chip, model, parameters

ORACLES = Path(__file__).resolve().parents[3] / "shared" / "oracles"
needs_oracles = pytest.mark.skipif(not ORACLES.is_dir(), reason="the oracles beside the project are absent")

GIGA, GIB = 10**9, 1 << 30
COLUMNS = {
    "year": ("year", 1),
    "bf16_dense_tflops": ("bf16_flops_per_s", 1e12),
    "fp8_dense_tflops": ("fp8_flops_per_s", 1e12),
    "int8_dense_tops": ("int8_ops_per_s", 1e12),
    "fp4_dense_tflops": ("fp4_flops_per_s", 1e12),
    "hbm_bw_GBps": ("hbm_bytes_per_s", 1e9),
    "scaleup_bidi_total_GBps": ("scaleup_bidi_bytes_per_s", 1e9),
    "links_per_chip": ("links_per_chip", 1),
    "link_oneway_GBps": ("link_oneway_bytes_per_s", 1e9),
    "scaleup_domain_chips": ("scaleup_domain_chips", 1),
    "dcn_Gbps_per_chip": ("dcn_oneway_bytes_per_s", 1e9 / 8),
    "chips_per_host": ("chips_per_host", 1),
    "tensorcores_per_chip": ("tensorcores_per_chip", 1),
    "mxus_per_core": ("mxus_per_tensorcore", 1),
    "onchip_sram_MiB_per_chip": ("onchip_sram_bytes", 1 << 20),
    "sparsecores_per_chip": ("sparsecores_per_chip", 1),
}


def rows(path: str) -> list[dict[str, str]]:
    file = ORACLES / path
    return list(csv.DictReader(file.open(encoding="utf-8"))) if file.exists() else []


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@needs_oracles
def test_every_chip_of_the_sheet_is_catalogued_under_the_sheet_s_own_name():
    names = [r["chip"] for r in rows("topology/specs.csv")]
    assert len(names) == len({chip(n).name for n in names}) == 18


@needs_oracles
@pytest.mark.parametrize("row", rows("topology/specs.csv"), ids=lambda r: r["chip"])
def test_numbers_agree_with_the_sheet(row):
    c = chip(row["chip"])
    compared = 0
    for column, (key, scale) in COLUMNS.items():
        expected = number(row[column])
        if expected is not None:
            assert c.value(key) == pytest.approx(expected * scale, rel=1e-4), column
            compared += 1
    assert compared >= 9
    side = number(row["mxu"].partition("x")[0])
    if side and "?" not in row["mxu"]:
        assert c.value("mxu_side") == side
    price = number(row["list_usd_per_chip_hour"])
    assert (c.price_suggestion and c.price_suggestion.usd_per_chip_hour) == price


@needs_oracles
@pytest.mark.parametrize("row", rows("topology/specs.csv"), ids=lambda r: r["chip"])
def test_capacity_is_the_sheet_s_in_its_own_unit_or_resolved_to_gib(row):
    c = chip(row["chip"])
    ways = {GIB} if "GiB" in row["hbm_unit"] else {GIB, GIGA}
    assert c.value("hbm_bytes") in {int(float(row["hbm_capacity"]) * way) for way in ways}
    if "GiB" not in row["hbm_unit"] and c.value("hbm_bytes") % GIB == 0:
        assert c.numbers["hbm_bytes"].note or "GiB" in c.numbers["hbm_bytes"].source  # says why GB became GiB


@needs_oracles
@pytest.mark.parametrize("row", rows("topology/specs.csv"), ids=lambda r: r["chip"])
def test_what_the_sheet_calls_unpublished_is_not_filled_in(row):
    if row["chip"] == "TPU 8t":
        assert all(chip("8t").value(k) is None for k in ("bf16_flops_per_s", "fp8_flops_per_s", "int8_ops_per_s"))
    if not row["bf16_dense_tflops"]:
        assert chip(row["chip"]).value("bf16_flops_per_s") is None
    if not row["fp8_dense_tflops"]:
        assert chip(row["chip"]).value("fp8_flops_per_s") is None


FLOPS = rows("training/flops_oracle.csv")


@needs_oracles
@pytest.mark.parametrize("row", [r for r in FLOPS if r["seq"] == "2048"], ids=lambda r: r["model"])
def test_parameters_agree_with_the_flop_oracle(row):
    p = parameters(model(row["model"]))
    assert p.total == pytest.approx(int(row["total_params"]), rel=1e-3)
    assert p.active_matmul == pytest.approx(int(row["active_matmul_params"]), rel=1e-3)
    # The same convention, so nothing is left to a tolerance:
    assert (p.total, p.active_matmul) == (int(row["total_params"]), int(row["active_matmul_params"]))


@needs_oracles
@pytest.mark.parametrize("row", FLOPS, ids=lambda r: f"{r['model']}@{r['seq']}")
def test_heads_windows_and_chunks_reproduce_the_oracle_s_attention(row):
    """Token pairs: T^2/2 for full, T W - W^2/2 for sliding, T C/2 for chunked; 2 FLOPs each way, 3 passes."""
    t = int(row["seq"])
    m = model(row["model"])
    attention = 0.0
    for a in m.attention:
        reach = min(t, a.window_tokens or t)
        pairs = {"full": t * t / 2, "sliding": t * reach - reach * reach / 2, "chunked": t * reach / 2}[a.span]
        attention += 6 * a.heads * (a.head_dim + a.value_head_dim) * pairs / t
    expected = float(row["gflops_tok_causal_window"])
    assert (attention + 6 * parameters(m).active_matmul) / 1e9 == pytest.approx(expected, rel=1e-5)


@needs_oracles
@pytest.mark.parametrize(
    "row",
    [r for r in rows("padding/oracle.csv") if r["tp"] == "1" and r["mxu"] == "128" and r["matmul"][:3] == "qk_"],
    ids=lambda r: f"{r['model']}@{r['seq']}:{r['matmul']}",
)
def test_head_counts_and_widths_agree_with_the_padding_oracle(row):
    """The oracle counts a sliding window that spans the whole sequence as global."""
    heads = 0
    for a in model(row["model"].partition("(")[0]).attention:
        local = a.span == "sliding" and a.window_tokens < int(row["seq"])
        if {"qk_local": local, "qk_chunk": a.span == "chunked", "qk_global": not local and a.span != "chunked"}[
            row["matmul"]
        ]:
            assert a.head_dim == int(row["K"])
            heads += a.heads
    assert heads == int(row["count"])


def test_jax_s_own_table_of_tpus_agrees():
    """JAX's figures are per TensorCore and rounded to three digits; ours are the documentation's, per chip."""
    info = pytest.importorskip("jax._src.pallas.mosaic.tpu_info", reason="JAX is not installed")
    # Where JAX and the documentation disagree by more than rounding (the notes of the entries say so):
    apart = {("TPU v3", "bf16_flops_per_s"), ("TPU v3", "hbm_bytes_per_s"), ("TPU v5p", "hbm_bytes_per_s")}
    kinds = [
        "TPU v2",
        "TPU v3",
        "TPU v4",
        "TPU v5e",
        "TPU v5 lite",
        "TPU v5",
        "TPU v5p",
        "TPU v6e",
        "TPU v6 lite",
        "TPU7",
        "TPU7x",
        "TPU8i",
    ]
    for kind in kinds:
        version = info.chip_version_from_device_kind(kind)
        cores = version.num_physical_tensor_cores_per_chip
        core = info.get_tpu_info_for_chip(version, 1)
        c = chip(kind)
        assert version.value.removesuffix("x") in c.name and c.value("tensorcores_per_chip") == cores
        assert c.value("mxu_side") == core.mxu_column_size and c.value("mxus_per_tensorcore") == core.num_mxus
        assert c.value("onchip_sram_bytes") == core.vmem_capacity_bytes * cores
        rounding = 0.08 if kind == "TPU v2" else 0.015  # JAX writes the v2's 16 GiB as 16e9
        assert c.value("hbm_bytes") == pytest.approx(core.hbm_capacity_bytes * cores, rel=rounding)
        for key, value in (
            ("bf16_flops_per_s", core.bf16_ops_per_second),
            ("fp8_flops_per_s", core.fp8_ops_per_second),
            ("int8_ops_per_s", core.int8_ops_per_second),
            ("int4_ops_per_s", core.int4_ops_per_second),
            ("hbm_bytes_per_s", core.mem_bw_bytes_per_second),
        ):
            if value and (c.name, key) not in apart:
                assert c.value(key) == pytest.approx(value * cores, rel=0.03), (kind, key)
