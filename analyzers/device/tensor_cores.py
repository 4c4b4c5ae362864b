"""Which matrix products of a GPU ran on its tensor cores, as the names of their kernels tell.

No trace says which unit a kernel used; libraries write the instruction, or the kind of unit, into names. `s16816gemm`
multiplies tiles of 16 x 8 x 16 on tensor cores, `sgemm` single numbers; AMD's Tensile writes `MI16x16x1` where it uses
matrix cores. What a name does not tell stays not told, such as kernels that Triton made.
"""

import re
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analyzers.device.op_units import Units
from runs.tables import Tables, frame

TENSOR, OTHER, UNTOLD = "tensor cores", "other units", "not told"
_TENSOR = re.compile(
    r"tensorop|[hi]mma(?![a-z])|wgmma|gmma|mma_?sync|wmma|nvjet|tensor\d+x\d+x\d+|warpgroupsize|umma"
    r"|(?:^|_)[a-z0-9]*(?:884|1688|16816|16832|16864|8816|8832|161616)(?:gemm|cudnn|fprop|dgrad|wgrad)"
    r"|_MI\d+x\d+x\d+|mfma|igemm_(?:fwd|bwd|wrw)_gtc",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"simt|ffma|(?:^|_|\b)[sdcz]gemm|gemv|gemm[kK]1|scudnn|winograd|convolve_sgemm|_S_B_.*_TT\d|dot_kernel"
    r"|sgemmEx|dgrad_engine|wgrad_alg\d_engine|wgrad2d_alg|conv_depthwise|conv2d_(?:forward|grouped)|im2col",
    re.IGNORECASE,
)
_DTYPE = re.compile(r"^(\w+)\[")
PRODUCTS = ("matmul", "convolution")
ROW_KEYS = ("op", "shape", "dtype", "category", "kernel", "count", "seconds", "tensor_core_seconds", "untold_seconds")


def unit_of_kernel(kernel: str) -> str:
    """TENSOR, OTHER or UNTOLD, by a kernel's name."""
    if _TENSOR.search(kernel):
        return TENSOR
    return OTHER if _OTHER.search(kernel) else UNTOLD


@dataclass(frozen=True)
class Products:
    """Time of matrix products and convolutions on a GPU: on tensor cores, on other units, not told. `by_dtype`: rows
    with dtype (None: no shapes told), seconds, tensor_core_seconds, untold_seconds. `by_shape`: with ROW_KEYS, kernel
    being the longest."""

    seconds: float
    tensor_core_seconds: float
    untold_seconds: float
    by_dtype: pd.DataFrame
    by_shape: pd.DataFrame

    @property
    def share(self) -> float | None:
        """Of the time of which the unit is told, that on tensor cores."""
        told = self.seconds - self.untold_seconds
        return self.tensor_core_seconds / told if told > 0 else None

    def to_dict(self, top: int) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "tensor_core_seconds": self.tensor_core_seconds,
            "untold_seconds": self.untold_seconds,
            "tensor_core_share": self.share,
            "by_dtype": _records(self.by_dtype),
            "by_shape": _records(self.by_shape.head(top)),
        }


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    plain = rows.astype(object).where(rows.notna(), None)
    return [{str(k): v for k, v in row.items()} for row in plain.to_dict("records")]


def products(tables: Tables, units: Units) -> Products | None:
    """The products of a GPU's profile; None where no kernel's name is told, as of TPUs, or no product ran."""
    chosen = units.members[units.members["category"].astype(object).isin(PRODUCTS)]
    if units.basis != "measured" or not len(chosen):
        return None
    kernels = frame(tables, "op_stats", ["capture", "op_id", "name", "text_value"], [("name", "==", "kernel")])
    if not len(kernels):
        return None
    kernels = kernels.astype({"text_value": object}).drop_duplicates(["capture", "op_id"])
    rows = chosen.merge(kernels[["capture", "op_id", "text_value"]], how="left", on=["capture", "op_id"])
    op = rows["unit"].map(units.rows["op"])
    kernel = rows["text_value"].astype(object).where(rows["text_value"].notna(), op).fillna("")
    shape = rows["shape"].astype(object).where(rows["shape"].notna(), None)
    seconds = rows["self_s"].astype(float).fillna(0.0)
    ran_on = kernel.map({k: unit_of_kernel(str(k)) for k in kernel.unique()})
    told = pd.DataFrame(
        {
            "op": op,
            "shape": shape,
            "dtype": shape.map(_dtype),
            "category": rows["category"].astype(object),
            "kernel": kernel,
            "count": rows["count"].fillna(0).astype(float),
            "seconds": seconds,
            "tensor_core_seconds": seconds.where(ran_on == TENSOR, 0.0),
            "untold_seconds": seconds.where(ran_on == UNTOLD, 0.0),
        }
    )
    by_dtype = _by(told, ["dtype"]).drop(columns=["count", "kernel"])
    return Products(
        seconds=float(told["seconds"].sum()),
        tensor_core_seconds=float(told["tensor_core_seconds"].sum()),
        untold_seconds=float(told["untold_seconds"].sum()),
        by_dtype=by_dtype,
        by_shape=_by(told, ["op", "shape", "dtype", "category"])[list(ROW_KEYS)],
    )


def _dtype(shape: str | None) -> str | None:
    """The element type of the first tensor of `bf16[16,559], f32[4]`."""
    match = _DTYPE.match(shape) if isinstance(shape, str) else None
    return match[1] if match else None


def _by(told: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Sums by columns, the longest first; of the kernels of each the longest is named."""
    how = dict.fromkeys(("count", "seconds", "tensor_core_seconds", "untold_seconds"), "sum") | {"kernel": "first"}
    longest = told.sort_values("seconds", ascending=False, kind="stable")
    rows = longest.groupby(key, dropna=False, sort=False).agg(how).reset_index()
    return rows.sort_values("seconds", ascending=False, kind="stable", ignore_index=True).astype({"count": int})
